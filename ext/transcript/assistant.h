/* A quick test for lines that cannot hold a record of the assistant. */

#ifndef TAILHOOK_ASSISTANT_H
#define TAILHOOK_ASSISTANT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "cpu.h"
#include "literal.h"
#include "text/utf8.h"

#if TAILHOOK_X86
/* end - p: at least 40. */
static TAILHOOK_AVX2 int
tailhook_holds_assistant(tailhook_cursor p, tailhook_cursor end)
{
    const __m256i letter_a = _mm256_set1_epi8('a');
    const __m256i letter_t = _mm256_set1_epi8('t');
    const __m256i letter_u = _mm256_set1_epi8('u');
    const __m256i backslash = _mm256_set1_epi8('\\');

    for (;;) {
        const __m256i first = _mm256_loadu_si256((const __m256i *)(const void *)p);
        const __m256i second = _mm256_loadu_si256((const __m256i *)(const void *)(p + 1));
        const __m256i ninth = _mm256_loadu_si256((const __m256i *)(const void *)(p + 8));
        uint32_t hits = (uint32_t)_mm256_movemask_epi8(_mm256_or_si256(
            _mm256_and_si256(_mm256_cmpeq_epi8(first, letter_a), _mm256_cmpeq_epi8(ninth, letter_t)),
            _mm256_and_si256(_mm256_cmpeq_epi8(first, backslash), _mm256_cmpeq_epi8(second, letter_u))));
        for (; hits; hits &= hits - 1) {
            const tailhook_cursor hit = p + __builtin_ctz(hits);
            if (*hit == '\\' || tailhook_begins(hit, tailhook_lit("assistant")))
                return 1;
        }
        if (end - p == 40) /* an escape may still be in the last 8 bytes */
            return memchr(end - 8, '\\', 8) != NULL;
        p = end - p >= 72 ? p + 32 : end - 40;
    }
}
#endif

/* Return 0 if a JSON text cannot hold the string "assistant": neither as it is nor with \u escapes. */
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

#endif
