/* Differences between processors.

   TAILHOOK_X86: SSE2 is always there. Code for AVX2 and AVX-512 is compiled for single functions (TAILHOOK_AVX2,
   TAILHOOK_AVX512) and chosen at run time (tailhook_has_avx2, tailhook_has_avx512). With TAILHOOK_PORTABLE defined, as
   tests do, the code for other processors is compiled. TAILHOOK_INLINE: a function that is always inlined. */

#ifndef TAILHOOK_CPU_H
#define TAILHOOK_CPU_H

#include <stddef.h>
#include <string.h>

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__)) && !defined(TAILHOOK_PORTABLE)
#define TAILHOOK_X86 1
#include <immintrin.h>
#define TAILHOOK_AVX2 __attribute__((target("avx2,bmi,bmi2,popcnt,lzcnt")))

static inline int
tailhook_has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2");
}

#define TAILHOOK_AVX512 __attribute__((target("avx512f,avx512bw,bmi,bmi2,popcnt,lzcnt")))

static inline int
tailhook_has_avx512(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && tailhook_has_avx2();
}
#else
#define TAILHOOK_X86 0
#endif

#if defined(__GNUC__) || defined(__clang__)
#define TAILHOOK_INLINE __attribute__((always_inline))
#else
#define TAILHOOK_INLINE
#endif

/* Set hundreds of bytes to zero. If compilers know the size, they put code in place of the call; the C library is
   faster than this code. */
static inline void
tailhook_clear(void *memory, size_t size)
{
#if defined(__GNUC__) || defined(__clang__)
    __asm__("" : "+r"(size));
#endif
    memset(memory, 0, size);
}

#define TAILHOOK_LIKELY(x) __builtin_expect(!!(x), 1)
#define TAILHOOK_UNLIKELY(x) __builtin_expect(!!(x), 0)

#endif
