/* JSON strings, many bytes at a time: finds the first byte that is not plain.

   Every function reads [p, end) and nothing beyond, not by one vector load. */

#ifndef TAILHOOK_STRINGS_H
#define TAILHOOK_STRINGS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "cpu.h"
#include "text/utf8.h"

/* Return one bit for each of 16 bytes that must be escaped in a JSON string (RFC 8259, 7): the quotation mark, the
   backslash, a control byte. */
#if TAILHOOK_X86
static inline unsigned
tailhook_stops16(tailhook_cursor p)
{
    const __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)p);
    const __m128i control = _mm_cmpeq_epi8(_mm_min_epu8(bytes, _mm_set1_epi8(0x1f)), bytes);
    const __m128i quote = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('"'));
    const __m128i backslash = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\\'));
    return (unsigned)_mm_movemask_epi8(_mm_or_si128(control, _mm_or_si128(quote, backslash)));
}
#endif

/* Return the first byte that must be escaped in a JSON string, or end. */
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
/* Return the escaped bytes of a block of 64, one bit for each byte.

   backslashes: a bit for each backslash.  carry: 1 if the block's first byte is escaped; set for the next block. */
static inline uint64_t
tailhook_escaped(uint64_t backslashes, uint64_t *carry)
{
    const uint64_t even = UINT64_C(0x5555555555555555);
    /* Every other backslash of a run escapes. If a run begins at an odd bit, the addition clears its bits and carries
       into the bit behind it. It changes no other run. A run from an odd bit thus escapes even bits, a run from an even
       bit escapes odd bits. */
    const uint64_t starts = backslashes & ~*carry;
    const uint64_t follows = starts << 1 | *carry;
    const uint64_t odd_starts = starts & ~even & ~follows;
    uint64_t sum;

    *carry = __builtin_add_overflow(odd_starts, starts, &sum);
    return (even ^ sum << 1) & follows;
}

/* Return the first stop in the block at p; if it is escaped, return its backslash. */
static inline tailhook_cursor
tailhook_stop_at(tailhook_cursor p, uint64_t stops, uint64_t escaped)
{
    p += __builtin_ctzll(stops);
    return escaped & stops & -stops ? p - 1 : p;
}

/* The characters that may follow a backslash, without the quotation mark and b, by their lower four bits. */
#define TAILHOOK_ESCAPES _mm_setr_epi8(1, 0, 'r', 0, 't', 0, 'f', 0, 0, 0, 0, 0, '\\', 0, 'n', '/')

/* Skip whole blocks of 64 bytes of a JSON string, with their escapes of two characters. Return the first byte that
   needs a look: the closing quotation mark, a control byte, any other escape; or the position with fewer than 64 bytes
   left. p: not within an escape. */
static TAILHOOK_AVX2 tailhook_cursor
tailhook_string_avx2(tailhook_cursor p, tailhook_cursor end)
{
    const __m256i quote = _mm256_set1_epi8('"');
    const __m256i backslash = _mm256_set1_epi8('\\');
    const __m256i control = _mm256_set1_epi8(0x1f);
    const __m256i letter_b = _mm256_set1_epi8('b');
    const __m256i others = _mm256_broadcastsi128_si256(TAILHOOK_ESCAPES);
    uint64_t carry = 0;

    for (; end - p >= 64; p += 64) {
        const __m256i low = _mm256_loadu_si256((const __m256i *)(const void *)p);
        const __m256i high = _mm256_loadu_si256((const __m256i *)(const void *)(p + 32));
#define TAILHOOK_BITS(of_low, of_high) \
    ((uint64_t)(uint32_t)_mm256_movemask_epi8(of_high) << 32 | (uint32_t)_mm256_movemask_epi8(of_low))
        const uint64_t quotes = TAILHOOK_BITS(_mm256_cmpeq_epi8(low, quote), _mm256_cmpeq_epi8(high, quote));
        const uint64_t controls = TAILHOOK_BITS(_mm256_cmpeq_epi8(_mm256_min_epu8(low, control), low),
                                                _mm256_cmpeq_epi8(_mm256_min_epu8(high, control), high));
        const uint64_t backslashes = TAILHOOK_BITS(_mm256_cmpeq_epi8(low, backslash), _mm256_cmpeq_epi8(high, backslash));
        uint64_t stops = quotes | controls;
        uint64_t escaped = 0;
        if (backslashes | carry) {
            escaped = tailhook_escaped(backslashes, &carry);
            stops &= ~escaped;
            stops |= escaped & ~(quotes | TAILHOOK_BITS(
                _mm256_or_si256(_mm256_cmpeq_epi8(_mm256_shuffle_epi8(others, low), low), _mm256_cmpeq_epi8(low, letter_b)),
                _mm256_or_si256(_mm256_cmpeq_epi8(_mm256_shuffle_epi8(others, high), high), _mm256_cmpeq_epi8(high, letter_b))));
        }
#undef TAILHOOK_BITS
        if (stops)
            return tailhook_stop_at(p, stops, escaped);
    }
    return p - carry;
}

/* The same for processors with AVX-512. */
static TAILHOOK_AVX512 tailhook_cursor
tailhook_string_avx512(tailhook_cursor p, tailhook_cursor end)
{
    const __m512i quote = _mm512_set1_epi8('"');
    const __m512i backslash = _mm512_set1_epi8('\\');
    const __m512i control = _mm512_set1_epi8(0x1f);
    const __m512i letter_b = _mm512_set1_epi8('b');
    const __m512i others = _mm512_broadcast_i32x4(TAILHOOK_ESCAPES);
    uint64_t carry = 0;

    for (; end - p >= 64; p += 64) {
        const __m512i bytes = _mm512_loadu_si512(p);
        const uint64_t quotes = _mm512_cmpeq_epi8_mask(bytes, quote);
        const uint64_t backslashes = _mm512_cmpeq_epi8_mask(bytes, backslash);
        uint64_t stops = quotes | _mm512_cmple_epu8_mask(bytes, control);
        uint64_t escaped = 0;
        if (backslashes | carry) {
            escaped = tailhook_escaped(backslashes, &carry);
            stops &= ~escaped;
            stops |= escaped & ~(quotes | _mm512_cmpeq_epi8_mask(_mm512_shuffle_epi8(others, bytes), bytes) |
                                 _mm512_cmpeq_epi8_mask(bytes, letter_b));
        }
        if (stops)
            return tailhook_stop_at(p, stops, escaped);
    }
    return p - carry;
}
#endif

/* Like tailhook_string_stop, but may go on behind escapes of two characters. */
static inline tailhook_cursor
tailhook_string_pass(tailhook_cursor p, tailhook_cursor end)
{
#if TAILHOOK_X86
    if (end - p >= 64 && tailhook_has_avx2())
        p = tailhook_has_avx512() ? tailhook_string_avx512(p, end) : tailhook_string_avx2(p, end);
#endif
    return tailhook_string_stop(p, end);
}

/* Like tailhook_string_stop, for strings shorter than 48 bytes, as most names and identifiers are. In longer ones it
   stops after 48 bytes. */
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

/* Return the first backslash or byte over 0x7f, or end. */
static inline tailhook_cursor
tailhook_plain_stop(tailhook_cursor p, tailhook_cursor end)
{
#if TAILHOOK_X86
    for (; end - p >= 16; p += 16) {
        const __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)p);
        const __m128i backslash = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\\'));
        const unsigned stops = (unsigned)_mm_movemask_epi8(_mm_or_si128(bytes, backslash));
        if (stops)
            return p + __builtin_ctz(stops);
    }
#endif
    while (p != end && *p < 0x80 && *p != '\\')
        p++;
    return p;
}

/* Store `count` ASCII characters at `index` of a str's data, whose characters have `width` bytes each. */
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

#endif
