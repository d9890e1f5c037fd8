/* Where may a literal stand? Buckets of windows, 64 places at a time.

   For each byte of a window two 16-byte tables say, by the byte's low and high
   half, which of eight buckets (one bit each) hold a window with it there. A
   byte shuffle looks 32 bytes up at once; the AND of all lookups leaves the
   buckets that may match at each place. Large sets have two groups of buckets.
   What is left is looked up by a hash of the window: eight bytes about it must be
   what the literals of that hash have in common. The automaton does the rest.

   A literal is never missed; a place may be reported where none stands. */

#ifndef TAILHOOK_PREFILTER_H
#define TAILHOOK_PREFILTER_H

#include "automaton.h"
#include "cpu.h"

#include <string.h>

#define TAILHOOK_BLOCK 64u      /* places a call looks at together */
#define TAILHOOK_BLOCK_READ (TAILHOOK_BLOCK + 7)   /* bytes from its start: the last place reads eight */

#if TAILHOOK_X86

/* At which of the places a literal may stand. Four places a turn, where there are fewer the last one again: what
   costs here is a branch that cannot be foretold. */
TAILHOOK_AVX2 static inline uint64_t
tailhook_checked(const tailhook_table *table, const uint8_t *block, uint64_t places)
{
    const uint64_t fold = table->head->fold ? 0x2020202020202020u : 0;
    const uint32_t hashed = ~(uint32_t)0 >> (32 - 8 * table->head->hashed);
    uint64_t passed = 0;
    uint64_t left = places;

    while (left) {
        for (int i = 0; i < 4; i++, left = places & (places - 1)) {
            const tailhook_check *check;
            uint32_t window;
            uint64_t bytes, value, mask;
            unsigned place;
            places = left ? left : places;
            place = (unsigned)_tzcnt_u64(places);
            memcpy(&window, block + place, sizeof(window));
            window = ((window | (uint32_t)fold) & hashed) * TAILHOOK_HASH_FACTOR >> (32 - TAILHOOK_HASH_BITS);
            check = &table->checks[table->slots[window]];
            memcpy(&bytes, block + place - check->back, sizeof(bytes));
            memcpy(&value, check->value, sizeof(value));
            memcpy(&mask, check->mask, sizeof(mask));
            passed |= (uint64_t)(((bytes | fold) & mask) == value) << place;
        }
    }
    return passed;
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

TAILHOOK_AVX2 static inline __attribute__((always_inline)) size_t
tailhook_prefilter_by(unsigned groups, const tailhook_table *table, const uint8_t *text, size_t length, size_t at,
                      uint64_t *survivors)
{
    __m256i tables[TAILHOOK_GROUPS * TAILHOOK_WINDOW * 2];
    uint64_t fresh = ~(uint64_t)0;

    for (unsigned i = 0; i < groups * TAILHOOK_WINDOW * 2; i++)
        tables[i] = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)(table->nibbles + 16 * i)));
    for (;; at += TAILHOOK_BLOCK) {
        __m256i first, second;
        uint64_t places, sure;
        if (TAILHOOK_UNLIKELY(length - at < TAILHOOK_BLOCK_READ)) {
            /* The last block overlaps the one before it. */
            size_t back = TAILHOOK_BLOCK_READ - (length - at);
            if (back >= TAILHOOK_BLOCK || back > at)
                break;
            at -= back;
            fresh <<= back;
        }
        first = tailhook_buckets(tables, text + at);
        second = tailhook_buckets(tables, text + at + 32);
        if (groups == 2) {
            first = _mm256_or_si256(first, tailhook_buckets(tables + TAILHOOK_WINDOW * 2, text + at));
            second = _mm256_or_si256(second, tailhook_buckets(tables + TAILHOOK_WINDOW * 2, text + at + 32));
        }
        if (_mm256_testz_si256(_mm256_or_si256(first, second), _mm256_or_si256(first, second)))
            continue;
        places = (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(second, _mm256_setzero_si256()));
        places = places << 32 | (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(first, _mm256_setzero_si256()));
        places = ~places & fresh;
        sure = at ? 0 : places % (1u << TAILHOOK_CHECK_BACK); /* nothing to compare before them */
        *survivors = tailhook_checked(table, text + at, places ^ sure) | sure;
        if (*survivors)
            return at;
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
