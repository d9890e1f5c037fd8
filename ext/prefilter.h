/* Where may a literal stand? Eight buckets of windows, 32 places at once.

   For each of the first bytes of a window two 16-byte tables say, by the byte's
   low and high half, which buckets (one bit each) hold a window with it there.
   A byte shuffle looks 32 bytes up at once; the AND of all lookups leaves the
   buckets that may match at each place. Such a place counts if the hash of its
   four bytes is that of a window of such a bucket. The automaton does the rest.

   A literal is never missed; a place may be reported where none stands. */

#ifndef TAILHOOK_PREFILTER_H
#define TAILHOOK_PREFILTER_H

#include "automaton.h"
#include "cpu.h"

#include <string.h>

#define TAILHOOK_BLOCK 64u      /* places a call looks at together */
#define TAILHOOK_BLOCK_READ (TAILHOOK_BLOCK + TAILHOOK_WINDOW - 1)

#if TAILHOOK_X86

static inline uint32_t
tailhook_window_hash(const tailhook_table *table, const uint8_t *at)
{
    uint32_t window;
    memcpy(&window, at, sizeof(window));
    if (table->head->fold)
        window |= 0x20202020u;
    return (window * TAILHOOK_HASH_FACTOR) >> (32 - TAILHOOK_HASH_BITS);
}

/* Which of the places have a window of their buckets, by its hash. Four places a turn, the first one again
   where there are fewer: what costs here is a branch that cannot be foretold. */
TAILHOOK_AVX2 static inline uint64_t
tailhook_hashed(const tailhook_table *table, const uint8_t *block, const uint8_t *buckets, uint64_t places)
{
    uint64_t left = 0;

    while (places) {
        for (int i = 0; i < 4; i++, places &= places - 1) {
            unsigned at = (unsigned)_tzcnt_u64(places) % TAILHOOK_BLOCK;
            left |= (uint64_t)!!(table->filter[tailhook_window_hash(table, block + at)] & buckets[at]) << at;
        }
    }
    return left;
}

/* May a literal stand about this window? */
static inline int
tailhook_checked(const tailhook_table *table, const uint8_t *text, size_t length, size_t window)
{
    const uint32_t hash = tailhook_window_hash(table, text + window);
    const tailhook_check *check;

    for (uint32_t i = table->slots[hash >> (TAILHOOK_HASH_BITS - TAILHOOK_SLOT_BITS)]; i; i = check->next) {
        uint64_t bytes, value, mask;
        check = &table->checks[i - 1];
        if (window < check->back || length - (window - check->back) < sizeof(bytes))
            return 1;
        memcpy(&bytes, text + window - check->back, sizeof(bytes));
        memcpy(&value, check->value, sizeof(value));
        memcpy(&mask, check->mask, sizeof(mask));
        if (table->head->fold)
            bytes |= 0x2020202020202020u;
        if ((bytes & mask) == value)
            return 1;
    }
    return 0;
}

TAILHOOK_AVX2 static inline __m256i
tailhook_buckets(const __m256i *low, const __m256i *high, unsigned positions, const uint8_t *at)
{
    const __m256i nibble = _mm256_set1_epi8(15);
    __m256i buckets = _mm256_set1_epi8(-1);

    for (unsigned i = 0; i < positions; i++) {
        __m256i bytes = _mm256_loadu_si256((const __m256i *)(const void *)(at + i));
        __m256i lows = _mm256_shuffle_epi8(low[i], _mm256_and_si256(bytes, nibble));
        __m256i highs = _mm256_shuffle_epi8(high[i], _mm256_and_si256(_mm256_srli_epi16(bytes, 4), nibble));
        buckets = _mm256_and_si256(buckets, _mm256_and_si256(lows, highs));
    }
    return buckets;
}

TAILHOOK_AVX2 static inline __attribute__((always_inline)) size_t
tailhook_prefilter_by(unsigned positions, const tailhook_table *table, const uint8_t *text, size_t length, size_t at,
                      uint64_t *survivors)
{
    const __m256i zero = _mm256_setzero_si256();
    __m256i low[TAILHOOK_WINDOW], high[TAILHOOK_WINDOW];
    uint64_t fresh = ~(uint64_t)0;
    uint64_t places;

    for (unsigned i = 0; i < positions; i++) {
        low[i] = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)(table->nibbles + 32 * i)));
        high[i] =
            _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)(table->nibbles + 32 * i + 16)));
    }
    for (;; at += TAILHOOK_BLOCK) {
        __m256i first, second;
        if (TAILHOOK_UNLIKELY(length - at < TAILHOOK_BLOCK_READ)) {
            /* The last block overlaps the one before it. */
            size_t back = TAILHOOK_BLOCK_READ - (length - at);
            if (back >= TAILHOOK_BLOCK || back > at)
                break;
            at -= back;
            fresh <<= back;
        }
        first = tailhook_buckets(low, high, positions, text + at);
        second = tailhook_buckets(low, high, positions, text + at + 32);
        if (!_mm256_testz_si256(_mm256_or_si256(first, second), _mm256_or_si256(first, second))) {
            uint8_t buckets[TAILHOOK_BLOCK];
            uint32_t empty_first = (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(first, zero));
            uint32_t empty_second = (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(second, zero));
            _mm256_storeu_si256((__m256i *)(void *)buckets, first);
            _mm256_storeu_si256((__m256i *)(void *)(buckets + 32), second);
            places = ~((uint64_t)empty_second << 32 | empty_first);
            places = tailhook_hashed(table, text + at, buckets, places) & fresh;
            for (*survivors = 0; places; places &= places - 1) {
                unsigned place = (unsigned)_tzcnt_u64(places);
                *survivors |= (uint64_t)tailhook_checked(table, text, length, at + place) << place;
            }
            if (*survivors)
                return at;
        }
    }
    *survivors = 0;
    return at;
}

/* The next block at or after `at` where a window may begin, and at which of its places (bits of *survivors).
   *survivors is 0 when the text is used up: from the returned place on, nothing was looked at. */
TAILHOOK_AVX2 static size_t
tailhook_prefilter(const tailhook_table *table, const uint8_t *text, size_t length, size_t at, uint64_t *survivors)
{
    switch (table->head->positions) {
    case 2:
        return tailhook_prefilter_by(2, table, text, length, at, survivors);
    case 3:
        return tailhook_prefilter_by(3, table, text, length, at, survivors);
    default:
        return tailhook_prefilter_by(4, table, text, length, at, survivors);
    }
}

static inline int
tailhook_has_prefilter(const tailhook_table *table)
{
    return table->head->positions && tailhook_has_avx2();
}

#else

static inline int
tailhook_has_prefilter(const tailhook_table *table)
{
    (void)table;
    return 0;
}

static inline size_t
tailhook_prefilter(const tailhook_table *table, const uint8_t *text, size_t length, size_t at, uint64_t *survivors)
{
    (void)table, (void)text, (void)length;
    *survivors = 0;
    return at;
}

#endif
#endif
