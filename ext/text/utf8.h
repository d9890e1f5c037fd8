/* UTF-8 (RFC 3629): finds the first invalid byte, reads a code point, and counts code points.

   Every function reads [p, end) and nothing beyond, not by one vector load. */

#ifndef TAILHOOK_UTF8_H
#define TAILHOOK_UTF8_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "cpu.h"

typedef const unsigned char *tailhook_cursor;

/* Return the first byte over 0x7f, or end. */
static inline tailhook_cursor
tailhook_ascii_stop(tailhook_cursor p, tailhook_cursor end)
{
#if TAILHOOK_X86
    for (; end - p >= 16; p += 16) {
        const unsigned high = (unsigned)_mm_movemask_epi8(_mm_loadu_si128((const __m128i *)(const void *)p));
        if (high)
            return p + __builtin_ctz(high);
    }
#else
    for (; end - p >= 8; p += 8) {
        uint64_t bytes;
        memcpy(&bytes, p, sizeof bytes);
        if (bytes & UINT64_C(0x8080808080808080))
            break;
    }
#endif
    while (p != end && *p < 0x80)
        p++;
    return p;
}

/* Return the length of the sequence at p. Its first byte is over 0x7f. Return 0 if it is invalid: cut off, an overlong
   form, a code point over U+10FFFF, or a surrogate unless `surrogates` is set. */
static inline size_t
tailhook_utf8_sequence(tailhook_cursor p, tailhook_cursor end, int surrogates)
{
    const unsigned lead = *p;
    const size_t length = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    if (lead < 0xc2 || lead > 0xf4 || (size_t)(end - p) < length)
        return 0;
    const unsigned lowest = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
    const unsigned highest = lead == 0xed && !surrogates ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
    if (p[1] < lowest || p[1] > highest)
        return 0;
    for (size_t i = 2; i < length; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    return length;
}

/* Return the code point of the valid sequence of `length` bytes, 2 or more, at p. */
static inline uint32_t
tailhook_utf8_decode(tailhook_cursor p, size_t length)
{
    uint32_t code_point = p[0] & (0xffu >> (length + 1));
    for (size_t i = 1; i < length; i++)
        code_point = code_point << 6 | (p[i] & 0x3f);
    return code_point;
}

/* Return the first byte that does not begin a valid sequence, or end. Most strings are short: a call would cost them more
   than the look. */
static inline TAILHOOK_INLINE tailhook_cursor
tailhook_utf8_stop(tailhook_cursor p, tailhook_cursor end)
{
    for (;;) {
        p = tailhook_ascii_stop(p, end);
        /* After one sequence that is not ASCII the next is seldom ASCII. */
        while (p != end && *p >= 0x80) {
            const size_t length = tailhook_utf8_sequence(p, end, 0);
            if (!length)
                return p;
            p += length;
        }
        if (p == end)
            return end;
    }
}

/* Return the number of code points that begin in [p, end): all bytes except continuation bytes. */
static size_t
tailhook_utf8_count(tailhook_cursor p, tailhook_cursor end)
{
    size_t count = 0;
#if TAILHOOK_X86
    __m128i sums = _mm_setzero_si128();
    for (; end - p >= 16; p += 16) {
        const __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)p);
        const __m128i begins = _mm_cmpgt_epi8(bytes, _mm_set1_epi8(-65)); /* not 0x80 to 0xbf */
        sums = _mm_add_epi64(sums, _mm_sad_epu8(_mm_and_si128(begins, _mm_set1_epi8(1)), _mm_setzero_si128()));
    }
    count = (size_t)_mm_cvtsi128_si64(_mm_add_epi64(sums, _mm_unpackhi_epi64(sums, sums)));
#endif
    for (; end - p >= 8; p += 8) {
        uint64_t bytes;
        memcpy(&bytes, p, sizeof bytes);
        bytes = bytes >> 7 & ~bytes >> 6 & UINT64_C(0x0101010101010101); /* 1 for each byte that continues */
        count += 8 - (size_t)(bytes * UINT64_C(0x0101010101010101) >> 56);
    }
    for (; p != end; p++)
        count += (*p & 0xc0) != 0x80;
    return count;
}

#endif
