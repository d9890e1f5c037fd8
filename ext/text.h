/* Bytes of text, many at a time: where a JSON string stops being plain, where
   UTF-8 stops being valid, and the last newline of a window.

   Every function reads [p, end) and nothing beyond, not by one vector load. */

#ifndef TAILHOOK_TEXT_H
#define TAILHOOK_TEXT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "cpu.h"

typedef const unsigned char *tailhook_cursor;

/* One bit for each of 16 bytes that cannot stand unescaped in a JSON string
   (RFC 8259, 7): the quotation mark, the reverse solidus, a control byte. */
#if TAILHOOK_X86
static inline unsigned
tailhook_stops16(tailhook_cursor p)
{
    const __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)p);
    const __m128i control = _mm_cmpeq_epi8(_mm_min_epu8(bytes, _mm_set1_epi8(0x1f)), bytes);
    const __m128i quote = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('"'));
    const __m128i solidus = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\\'));
    return (unsigned)_mm_movemask_epi8(_mm_or_si128(control, _mm_or_si128(quote, solidus)));
}
#endif

/* The first byte that cannot stand unescaped in a JSON string; end if none. */
static inline tailhook_cursor
tailhook_string_stop(tailhook_cursor p, tailhook_cursor end)
{
#if TAILHOOK_X86
    for (; end - p >= 16; p += 16) {
        const unsigned stops = tailhook_stops16(p);
        if (stops)
            return p + __builtin_ctz(stops);
    }
#endif
    while (p != end && *p >= 0x20 && *p != '"' && *p != '\\')
        p++;
    return p;
}

/* The first byte over 0x7f; end if none. */
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

/* The length of the UTF-8 sequence at p, a byte over 0x7f; 0 if it is none
   (RFC 3629, 4: no overlong forms, no surrogates, nothing over U+10FFFF). */
static inline size_t
tailhook_utf8_sequence(tailhook_cursor p, tailhook_cursor end)
{
    const unsigned lead = *p;
    const size_t length = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    if (lead < 0xc2 || lead > 0xf4 || (size_t)(end - p) < length)
        return 0;
    const unsigned lowest = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
    const unsigned highest = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
    if (p[1] < lowest || p[1] > highest)
        return 0;
    for (size_t i = 2; i < length; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    return length;
}

/* The first byte that begins no valid UTF-8 sequence; end if none. */
static inline tailhook_cursor
tailhook_utf8_stop(tailhook_cursor p, tailhook_cursor end)
{
    for (;;) {
        p = tailhook_ascii_stop(p, end);
        /* Where one sequence is not ASCII the next is seldom. */
        while (p != end && *p >= 0x80) {
            const size_t length = tailhook_utf8_sequence(p, end);
            if (!length)
                return p;
            p += length;
        }
        if (p == end)
            return end;
    }
}

#endif
