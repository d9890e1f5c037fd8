/* Finds the possible places of literals, 64 at a time.

   A window is a few bytes of a literal. Windows are put into eight buckets, one bit each; large sets have two such
   groups. For each byte of a window, there are two tables of 16 entries, one for the byte's low half and one for its
   high half. An entry has the buckets of the windows with this half at this byte. A byte shuffle looks up 32 bytes
   at once. The AND of all lookups is the set of buckets that may match at each place. The remaining places are
   looked up by a hash of the window: eight bytes around it must equal the common bytes of the literals with that
   hash. The automaton does the rest.

   A literal is never missed. A reported place may have no literal. */

#ifndef TAILHOOK_PREFILTER_H
#define TAILHOOK_PREFILTER_H

#include "automaton.h"
#include "cpu.h"

#include <string.h>

#define TAILHOOK_BLOCK 64u
#define TAILHOOK_BLOCK_READ (TAILHOOK_BLOCK + 7)    /* bytes that a block reads: its last place reads eight */
#define TAILHOOK_BLOCKS 32u                         /* max blocks that are looked at in one go */

#define TAILHOOK_NARROW 4u                          /* bytes of a window in sets with one group */

#define TAILHOOK_AHEAD 4096                         /* bytes to prefetch; may be behind the text */

/* A block with the places at which a window may begin. */
typedef struct {
    size_t at;
    uint64_t places;            /* a bit for each place, the first one lowest */
} tailhook_block;

/* The state of one search. */
typedef struct {
    const tailhook_table *table;
    const uint8_t *text;
    size_t length;
    size_t at;                  /* the blocks before it are done */
    unsigned count;             /* of blocks with places */
    unsigned next;              /* the one to return next */
    tailhook_block blocks[TAILHOOK_BLOCKS];
} tailhook_prefilter;

#if TAILHOOK_X86

/* Look up `count` blocks from `at` on in the tables. Fill `blocks` with the blocks that have places, and return their
   number. No branch depends on the text. */
TAILHOOK_AVX512 static inline __attribute__((always_inline)) unsigned
tailhook_look_avx512(unsigned groups, unsigned width, const uint8_t *nibbles, const uint8_t *text, size_t at, size_t count,
                     tailhook_block *blocks)
{
    const __m512i nibble = _mm512_set1_epi8(15);
    __m512i tables[TAILHOOK_GROUPS * TAILHOOK_WINDOW * 2];
    unsigned found = 0;

    for (unsigned i = 0; i < groups * TAILHOOK_WINDOW * 2; i++)
        tables[i] = _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)(const void *)(nibbles + 16 * i)));
    for (; count; count--, at += TAILHOOK_BLOCK) {
        __m512i buckets[TAILHOOK_GROUPS];
        for (unsigned i = 0; i < width; i++) {
            __m512i bytes = _mm512_loadu_si512(text + at + i);
            __m512i low = _mm512_and_si512(bytes, nibble);
            __m512i high = _mm512_and_si512(_mm512_srli_epi16(bytes, 4), nibble);
            for (unsigned group = 0; group < groups; group++) {
                const __m512i *table = tables + (group * TAILHOOK_WINDOW + i) * 2;
                __m512i here = _mm512_and_si512(_mm512_shuffle_epi8(table[0], low), _mm512_shuffle_epi8(table[1], high));
                buckets[group] = i ? _mm512_and_si512(buckets[group], here) : here;
            }
        }
        if (groups == 2)
            buckets[0] = _mm512_or_si512(buckets[0], buckets[1]);
        _mm_prefetch((const void *)((uintptr_t)(text + at) + TAILHOOK_AHEAD), _MM_HINT_T0);
        blocks[found] = (tailhook_block){at, _mm512_test_epi8_mask(buckets[0], buckets[0])};
        found += blocks[found].places != 0;
    }
    return found;
}

TAILHOOK_AVX512 static unsigned
tailhook_look_wide(const tailhook_table *table, const uint8_t *text, size_t at, size_t count, tailhook_block *blocks)
{
    if (table->head->groups == 1)
        return tailhook_look_avx512(1, TAILHOOK_NARROW, table->nibbles, text, at, count, blocks);
    return tailhook_look_avx512(2, TAILHOOK_WINDOW, table->nibbles, text, at, count, blocks);
}

/* Return the buckets for 32 places of one group. */
TAILHOOK_AVX2 static inline __m256i
tailhook_buckets(unsigned width, const __m256i *tables, const uint8_t *at)
{
    const __m256i nibble = _mm256_set1_epi8(15);
    __m256i buckets = _mm256_set1_epi8(-1);

    for (unsigned i = 0; i < width; i++) {
        __m256i bytes = _mm256_loadu_si256((const __m256i *)(const void *)(at + i));
        __m256i low = _mm256_shuffle_epi8(tables[2 * i], _mm256_and_si256(bytes, nibble));
        __m256i high = _mm256_shuffle_epi8(tables[2 * i + 1], _mm256_and_si256(_mm256_srli_epi16(bytes, 4), nibble));
        buckets = _mm256_and_si256(buckets, _mm256_and_si256(low, high));
    }
    return buckets;
}

TAILHOOK_AVX2 static inline __attribute__((always_inline)) unsigned
tailhook_look_avx2(unsigned groups, unsigned width, const uint8_t *nibbles, const uint8_t *text, size_t at, size_t count,
                   tailhook_block *blocks)
{
    const __m256i zero = _mm256_setzero_si256();
    __m256i tables[TAILHOOK_GROUPS * TAILHOOK_WINDOW * 2];
    unsigned found = 0;

    for (unsigned i = 0; i < groups * TAILHOOK_WINDOW * 2; i++)
        tables[i] = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)(nibbles + 16 * i)));
    for (; count; count--, at += TAILHOOK_BLOCK) {
        __m256i first = tailhook_buckets(width, tables, text + at);
        __m256i second = tailhook_buckets(width, tables, text + at + 32);
        uint64_t empty;
        if (groups == 2) {
            first = _mm256_or_si256(first, tailhook_buckets(width, tables + TAILHOOK_WINDOW * 2, text + at));
            second = _mm256_or_si256(second, tailhook_buckets(width, tables + TAILHOOK_WINDOW * 2, text + at + 32));
        }
        empty = (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(second, zero));
        empty = empty << 32 | (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(first, zero));
        blocks[found] = (tailhook_block){at, ~empty};
        found += ~empty != 0;
    }
    return found;
}

TAILHOOK_AVX2 static unsigned
tailhook_look_narrow(const tailhook_table *table, const uint8_t *text, size_t at, size_t count, tailhook_block *blocks)
{
    if (table->head->groups == 1)
        return tailhook_look_avx2(1, TAILHOOK_NARROW, table->nibbles, text, at, count, blocks);
    return tailhook_look_avx2(2, TAILHOOK_WINDOW, table->nibbles, text, at, count, blocks);
}

/* Return the places that may have a literal. Four places are checked at a time, the last one again if there are
   fewer: the cost here is a branch that cannot be predicted. */
static inline uint64_t
tailhook_checked(const tailhook_table *table, const uint8_t *block, uint64_t places)
{
    const uint64_t fold = table->head->fold;
    const uint32_t hashed = table->head->hashed;
    uint64_t passed = 0;
    uint64_t left = places;

    while (left) {
        for (int i = 0; i < 4; i++, left = places & (places - 1)) {
            const tailhook_check *check;
            uint64_t bytes, value, mask;
            uint32_t window;
            unsigned place;
            places = left ? left : places;
            place = (unsigned)__builtin_ctzll(places);
            memcpy(&window, block + place, sizeof(window));
            window = ((window | (uint32_t)fold) & hashed) * TAILHOOK_HASH_FACTOR >> (32 - TAILHOOK_HASH_BITS);
            check = &table->checks[table->slots[window]];
            memcpy(&bytes, block + place - check->back, sizeof(bytes));
            memcpy(&value, check->value, sizeof(value));
            memcpy(&mask, check->mask, sizeof(mask));
            passed |= (uint64_t)(((bytes | (fold << 32 | fold)) & mask) == value) << place;
        }
    }
    return passed;
}

/* Look at more blocks. Return 0 if there are none. */
static int
tailhook_look(tailhook_prefilter *way)
{
    size_t rest = way->length - way->at;
    size_t count = rest < TAILHOOK_BLOCK_READ ? 0 : (rest - TAILHOOK_BLOCK_READ) / TAILHOOK_BLOCK + 1;
    const int first = way->at == 0;
    uint64_t fresh = ~(uint64_t)0;

    if (count == 0) {
        /* The last block overlaps the one before it. */
        size_t back = TAILHOOK_BLOCK_READ - rest;
        if (back >= TAILHOOK_BLOCK || back > way->at)
            return 0;
        way->at -= back;
        fresh <<= back;
        count = 1;
    }
    if (first)
        count = 1;
    if (count > TAILHOOK_BLOCKS)
        count = TAILHOOK_BLOCKS;
    way->next = 0;
    if (tailhook_has_avx512())
        way->count = tailhook_look_wide(way->table, way->text, way->at, count, way->blocks);
    else
        way->count = tailhook_look_narrow(way->table, way->text, way->at, count, way->blocks);
    if (way->count)
        way->blocks[0].places &= fresh;
    /* The first block is looked up alone, and the second one overlaps it. So all others begin with a cache line. */
    if (first)
        way->at = TAILHOOK_BLOCK - (uintptr_t)way->text % TAILHOOK_BLOCK;
    else
        way->at += count * TAILHOOK_BLOCK;
    return 1;
}

/* Set `block` to the next block at which a literal may be. Return 0 if there is none: from way->at on, the text is too
   short. */
static int
tailhook_prefilter_next(tailhook_prefilter *way, tailhook_block *block)
{
    for (;;) {
        while (way->next < way->count) {
            uint64_t sure;
            *block = way->blocks[way->next++];
            sure = 0; /* places too near the start of the text to compare the bytes before them */
            if (block->at < TAILHOOK_CHECK_BACK)
                sure = block->places % (1u << (TAILHOOK_CHECK_BACK - block->at));
            block->places = tailhook_checked(way->table, way->text + block->at, block->places ^ sure) | sure;
            if (block->places)
                return 1;
        }
        if (!tailhook_look(way))
            return 0;
    }
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

static inline int
tailhook_prefilter_next(tailhook_prefilter *way, tailhook_block *block)
{
    (void)way, (void)block;
    return 0;
}

#endif
#endif
