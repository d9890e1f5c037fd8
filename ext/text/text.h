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

#if TAILHOOK_X86
/* Past whole blocks of 64 bytes of a JSON string, its escapes of two characters
   included, as long as there is nothing else to see to in them: at the closing
   quotation mark, a control byte, an escape that is longer or none, or where
   fewer than 64 bytes are left. p: not within an escape. */
static TAILHOOK_AVX2 tailhook_cursor
tailhook_string_blocks(tailhook_cursor p, tailhook_cursor end)
{
    const __m256i quote = _mm256_set1_epi8('"');
    const __m256i solidus = _mm256_set1_epi8('\\');
    const __m256i control = _mm256_set1_epi8(0x1f);
    const __m256i letter_b = _mm256_set1_epi8('b');
    /* The other characters that may follow a reverse solidus, by their lower four bits. */
    const __m256i others = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(1, 0, 'r', 0, 't', 0, 'f', 0, 0, 0, 0, 0, '\\', 0, 'n', '/'));
    const uint64_t even = UINT64_C(0x5555555555555555);
    uint64_t carry = 0; /* 1: the block's first byte is escaped */

    for (; end - p >= 64; p += 64) {
        const __m256i low = _mm256_loadu_si256((const __m256i *)(const void *)p);
        const __m256i high = _mm256_loadu_si256((const __m256i *)(const void *)(p + 32));
#define TAILHOOK_BITS(of_low, of_high) \
    ((uint64_t)(uint32_t)_mm256_movemask_epi8(of_high) << 32 | (uint32_t)_mm256_movemask_epi8(of_low))
        const uint64_t quotes = TAILHOOK_BITS(_mm256_cmpeq_epi8(low, quote), _mm256_cmpeq_epi8(high, quote));
        const uint64_t controls = TAILHOOK_BITS(_mm256_cmpeq_epi8(_mm256_min_epu8(low, control), low),
                                                _mm256_cmpeq_epi8(_mm256_min_epu8(high, control), high));
        uint64_t solidi = TAILHOOK_BITS(_mm256_cmpeq_epi8(low, solidus), _mm256_cmpeq_epi8(high, solidus));
        uint64_t stops = quotes | controls;
        uint64_t escaped = carry;
        if (solidi | carry) {
            /* Within a run of solidi every other one escapes. A run that begins at
               an odd bit is carried out of the run by the addition, so that below
               its end the sum differs from the run, and beside it not. */
            solidi &= ~carry;
            const uint64_t follows = solidi << 1 | carry;
            const uint64_t odd_starts = solidi & ~even & ~follows;
            uint64_t sum;
            carry = __builtin_add_overflow(odd_starts, solidi, &sum);
            escaped = (even ^ sum << 1) & follows;
            const uint64_t known = quotes | TAILHOOK_BITS(
                _mm256_or_si256(_mm256_cmpeq_epi8(_mm256_shuffle_epi8(others, low), low), _mm256_cmpeq_epi8(low, letter_b)),
                _mm256_or_si256(_mm256_cmpeq_epi8(_mm256_shuffle_epi8(others, high), high), _mm256_cmpeq_epi8(high, letter_b)));
            stops = (stops & ~escaped) | (escaped & ~known);
        }
#undef TAILHOOK_BITS
        if (stops) {
            p += __builtin_ctzll(stops);
            return escaped & stops & -stops ? p - 1 : p;
        }
    }
    return p - carry;
}
#endif

/* As tailhook_string_stop, or further, past escapes of two characters. */
static inline tailhook_cursor
tailhook_string_pass(tailhook_cursor p, tailhook_cursor end)
{
#if TAILHOOK_X86
    if (end - p >= 64 && tailhook_has_avx2())
        p = tailhook_string_blocks(p, end);
#endif
    return tailhook_string_stop(p, end);
}

/* As tailhook_string_stop for the many strings shorter than 48 bytes, as names, numbers and identifiers are; past 48
   bytes of others. */
static inline tailhook_cursor
tailhook_string_short(tailhook_cursor p, tailhook_cursor end)
{
#if TAILHOOK_X86
    if (end - p >= 48) {
        for (int i = 0; i < 3; i++, p += 16) {
            const unsigned stops = tailhook_stops16(p);
            if (stops)
                return p + __builtin_ctz(stops);
        }
        return p;
    }
#endif
    return tailhook_string_stop(p, end);
}

#if TAILHOOK_X86
/* end - p: at least 40. */
static TAILHOOK_AVX2 int
tailhook_holds_assistant(tailhook_cursor p, tailhook_cursor end)
{
    const __m256i letter_a = _mm256_set1_epi8('a');
    const __m256i letter_t = _mm256_set1_epi8('t');
    const __m256i letter_u = _mm256_set1_epi8('u');
    const __m256i solidus = _mm256_set1_epi8('\\');

    for (;;) {
        const __m256i first = _mm256_loadu_si256((const __m256i *)(const void *)p);
        const __m256i second = _mm256_loadu_si256((const __m256i *)(const void *)(p + 1));
        const __m256i ninth = _mm256_loadu_si256((const __m256i *)(const void *)(p + 8));
        uint32_t hits = (uint32_t)_mm256_movemask_epi8(_mm256_or_si256(
            _mm256_and_si256(_mm256_cmpeq_epi8(first, letter_a), _mm256_cmpeq_epi8(ninth, letter_t)),
            _mm256_and_si256(_mm256_cmpeq_epi8(first, solidus), _mm256_cmpeq_epi8(second, letter_u))));
        for (; hits; hits &= hits - 1) {
            const tailhook_cursor hit = p + __builtin_ctz(hits);
            if (*hit == '\\' || memcmp(hit, "assistant", 9) == 0)
                return 1;
        }
        if (end - p == 40) /* an escape may still be in the last 8 bytes */
            return memchr(end - 8, '\\', 8) != NULL;
        p = end - p >= 72 ? p + 32 : end - 40;
    }
}
#endif

/* May a JSON text hold the string "assistant"? No: it is not there, and nothing that could be an escaped spelling. */
static inline int
tailhook_may_hold_assistant(tailhook_cursor p, tailhook_cursor end)
{
#if TAILHOOK_X86
    if (end - p >= 40 && tailhook_has_avx2())
        return tailhook_holds_assistant(p, end);
#endif
    (void)p;
    (void)end;
    return 1;
}

/* The first reverse solidus or byte over 0x7f; end if none. */
static inline tailhook_cursor
tailhook_plain_stop(tailhook_cursor p, tailhook_cursor end)
{
#if TAILHOOK_X86
    for (; end - p >= 16; p += 16) {
        const __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)p);
        const __m128i solidus = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\\'));
        const unsigned stops = (unsigned)_mm_movemask_epi8(_mm_or_si128(bytes, solidus));
        if (stops)
            return p + __builtin_ctz(stops);
    }
#endif
    while (p != end && *p < 0x80 && *p != '\\')
        p++;
    return p;
}

/* Characters of one byte each, stored at `index` of a str's data whose characters have `width` bytes. */
static inline void
tailhook_widen(void *data, int width, ptrdiff_t index, tailhook_cursor p, ptrdiff_t count)
{
    if (width == 1)
        memcpy((uint8_t *)data + index, p, (size_t)count);
    else if (width == 2)
        for (ptrdiff_t i = 0; i < count; i++)
            ((uint16_t *)data)[index + i] = p[i];
    else
        for (ptrdiff_t i = 0; i < count; i++)
            ((uint32_t *)data)[index + i] = p[i];
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
