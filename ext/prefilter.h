/* Where may a literal stand? Buckets of windows, 64 places at a time.

   For each byte of a window two 16-byte tables say, by the byte's low and high
   half, which of eight buckets (one bit each) hold a window with it there. A
   byte shuffle looks 32 bytes up at once; the AND of all lookups leaves the
   buckets that may match at each place. Large sets have two groups of buckets.
   What is left is looked up by the hash of its four bytes, and then compared
   with eight bytes of the literals of that hash. The automaton does the rest.

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
            unsigned here = buckets[at] | (unsigned)buckets[at + TAILHOOK_BLOCK] << 8;
            left |= (uint64_t)!!(table->hashed[tailhook_window_hash(table, block + at)] & here) << at;
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

/* The buckets that may match at each of 32 places; `tables` is of one group. */
TAILHOOK_AVX2 static inline __m256i
tailhook_buckets(const __m256i *tables, const uint8_t *at)
{
    const __m256i nibble = _mm256_set1_epi8(15);
    __m256i buckets = _mm256_set1_epi8(-1);

    for (unsigned i = 0; i < TAILHOOK_WINDOW; i++) {
        __m256i bytes = _mm256_loadu_si256((const __m256i *)(const void *)(at + i));
        __m256i low = _mm256_shuffle_epi8(tables[2 * i], _mm256_and_si256(bytes, nibble));
        __m256i high = _mm256_shuffle_epi8(tables[2 * i + 1], _mm256_and_si256(_mm256_srli_epi16(bytes, 4), nibble));
        buckets = _mm256_and_si256(buckets, _mm256_and_si256(low, high));
    }
    return buckets;
}

/* At which of 64 places a window may begin. */
TAILHOOK_AVX2 static uint64_t
tailhook_survivors(const tailhook_table *table, const uint8_t *text, size_t length, size_t at, const __m256i *found)
{
    const __m256i zero = _mm256_setzero_si256();
    uint8_t buckets[TAILHOOK_GROUPS * TAILHOOK_BLOCK];
    uint32_t empty[2];
    uint64_t places;
    uint64_t survivors = 0;

    for (int i = 0; i < 2; i++) {
        empty[i] = (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(_mm256_or_si256(found[i], found[i + 2]), zero));
        _mm256_storeu_si256((__m256i *)(void *)(buckets + 32 * i), found[i]);
        _mm256_storeu_si256((__m256i *)(void *)(buckets + 32 * i + TAILHOOK_BLOCK), found[i + 2]);
    }
    places = tailhook_hashed(table, text + at, buckets, ~((uint64_t)empty[1] << 32 | empty[0]));
    for (; places; places &= places - 1) {
        unsigned place = (unsigned)_tzcnt_u64(places);
        survivors |= (uint64_t)tailhook_checked(table, text, length, at + place) << place;
    }
    return survivors;
}

TAILHOOK_AVX2 static inline __attribute__((always_inline)) size_t
tailhook_prefilter_by(unsigned groups, const tailhook_table *table, const uint8_t *text, size_t length, size_t at,
                      uint64_t *survivors)
{
    __m256i tables[TAILHOOK_GROUPS * TAILHOOK_WINDOW * 2];
    uint64_t fresh = ~(uint64_t)0;

    for (unsigned i = 0; i < groups * TAILHOOK_WINDOW * 2; i++)
        tables[i] = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)(table->nibbles + 16 * i)));
    for (;; at += TAILHOOK_BLOCK) {
        __m256i found[4], any;
        if (TAILHOOK_UNLIKELY(length - at < TAILHOOK_BLOCK_READ)) {
            /* The last block overlaps the one before it. */
            size_t back = TAILHOOK_BLOCK_READ - (length - at);
            if (back >= TAILHOOK_BLOCK || back > at)
                break;
            at -= back;
            fresh <<= back;
        }
        found[0] = tailhook_buckets(tables, text + at);
        found[1] = tailhook_buckets(tables, text + at + 32);
        found[2] = found[3] = _mm256_setzero_si256();
        any = _mm256_or_si256(found[0], found[1]);
        if (groups == 2) {
            found[2] = tailhook_buckets(tables + TAILHOOK_WINDOW * 2, text + at);
            found[3] = tailhook_buckets(tables + TAILHOOK_WINDOW * 2, text + at + 32);
            any = _mm256_or_si256(any, _mm256_or_si256(found[2], found[3]));
        }
        if (!_mm256_testz_si256(any, any)) {
            *survivors = tailhook_survivors(table, text, length, at, found) & fresh;
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
    if (table->head->groups == 1)
        return tailhook_prefilter_by(1, table, text, length, at, survivors);
    return tailhook_prefilter_by(2, table, text, length, at, survivors);
}

static inline int
tailhook_has_prefilter(const tailhook_table *table)
{
    return table->head->groups && tailhook_has_avx2();
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
