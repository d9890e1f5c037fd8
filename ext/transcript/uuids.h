/* Finds the members "uuid" of a JSON text, at any depth; and one uuid in a file. */

#ifndef TAILHOOK_UUIDS_H
#define TAILHOOK_UUIDS_H

#include <stdint.h>
#include <string.h>

#include "cpu.h"
#include "literal.h"
#include "os/file.h"
#include "text/utf8.h"

#if TAILHOOK_X86
/* As below, but in whole blocks only: return the position with fewer than 37 bytes left if there is none before. */
static TAILHOOK_AVX2 tailhook_cursor
tailhook_uuid_avx2(tailhook_cursor p, tailhook_cursor end)
{
    const __m256i letter_u = _mm256_set1_epi8('u');
    const __m256i letter_d = _mm256_set1_epi8('d');

    for (; end - p >= 37; p += 32) {
        const __m256i second = _mm256_loadu_si256((const __m256i *)(const void *)(p + 1));
        const __m256i fifth = _mm256_loadu_si256((const __m256i *)(const void *)(p + 4));
        uint32_t hits = (uint32_t)_mm256_movemask_epi8(
            _mm256_and_si256(_mm256_cmpeq_epi8(second, letter_u), _mm256_cmpeq_epi8(fifth, letter_d)));
        for (; hits; hits &= hits - 1) {
            const tailhook_cursor hit = p + __builtin_ctz(hits);
            if (tailhook_begins(hit, tailhook_lit("\"uuid\"")))
                return hit;
        }
    }
    return p;
}
#endif

/* Return the first "uuid" with its quotation marks, or NULL. */
static inline tailhook_cursor
tailhook_next_uuid(tailhook_cursor p, tailhook_cursor end)
{
#if TAILHOOK_X86
    if (tailhook_has_avx2()) {
        p = tailhook_uuid_avx2(p, end);
        if (end - p >= 37)
            return p;
    }
#endif
    const struct tailhook_literal name = tailhook_lit("\"uuid\"");
    for (; end - p >= (ptrdiff_t)name.size; p++) {
        if (*p == '"' && tailhook_begins(p, name))
            return p;
    }
    return NULL;
}

#if TAILHOOK_X86
/* As below, but in whole blocks only: return the position with fewer than 64 + size bytes left if it is not there. */
static TAILHOOK_AVX2 tailhook_cursor
tailhook_word_avx2(tailhook_cursor p, tailhook_cursor end, tailhook_cursor word, size_t size)
{
    const __m256i first = _mm256_set1_epi8((char)word[0]);
    const __m256i last = _mm256_set1_epi8((char)word[size - 1]);

    for (; (size_t)(end - p) >= 64 + size; p += 64) {
        const __m256i *const heads = (const __m256i *)(const void *)p;
        const __m256i *const ends = (const __m256i *)(const void *)(p + size - 1);
        const __m256i low = _mm256_and_si256(_mm256_cmpeq_epi8(_mm256_loadu_si256(heads), first),
                                             _mm256_cmpeq_epi8(_mm256_loadu_si256(ends), last));
        const __m256i high = _mm256_and_si256(_mm256_cmpeq_epi8(_mm256_loadu_si256(heads + 1), first),
                                              _mm256_cmpeq_epi8(_mm256_loadu_si256(ends + 1), last));
        uint64_t hits;
        if (_mm256_testz_si256(_mm256_or_si256(low, high), _mm256_or_si256(low, high)))
            continue;
        hits = (uint64_t)(uint32_t)_mm256_movemask_epi8(high) << 32 | (uint32_t)_mm256_movemask_epi8(low);
        for (; hits; hits &= hits - 1) {
            if (memcmp(p + __builtin_ctzll(hits), word, size) == 0)
                return p + __builtin_ctzll(hits);
        }
    }
    return p;
}
#endif

/* Return whether a text holds a word of at least one byte. */
static inline int
tailhook_holds_word(tailhook_cursor p, tailhook_cursor end, tailhook_cursor word, size_t size)
{
#if TAILHOOK_X86
    if (tailhook_has_avx2()) {
        p = tailhook_word_avx2(p, end, word, size);
        if ((size_t)(end - p) >= 64 + size)
            return 1;
    }
#endif
    return memmem(p, (size_t)(end - p), word, size) != NULL;
}

/* Return whether a file holds a word before an offset, in at most `most` bytes; -1 with errno set if it cannot be read.
   size: at most TAILHOOK_MAX_WORD. */
#define TAILHOOK_MAX_WORD 64
static inline int
tailhook_file_holds(int fd, int64_t end, int64_t most, tailhook_cursor word, size_t size)
{
    static const size_t block_size = 1 << 16;
    unsigned char data[(1 << 16) + TAILHOOK_MAX_WORD];
    int64_t at = end > most ? end - most : 0;
    size_t kept = 0; /* the end of the last block: a word may begin in it */

    while (at < end) {
        const size_t wanted = end - at < (int64_t)block_size ? (size_t)(end - at) : block_size;
        const ptrdiff_t count = tailhook_read_at(fd, data + kept, wanted, at);
        if (count <= 0)
            return (int)count;
        if (tailhook_holds_word(data, data + kept + count, word, size))
            return 1;
        at += count;
        kept += (size_t)count;
        if (kept >= size) {
            memmove(data, data + kept - (size - 1), size - 1);
            kept = size - 1;
        }
    }
    return 0;
}

#endif
