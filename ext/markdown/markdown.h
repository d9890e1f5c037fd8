/* The bytes that a Markdown text turns on, found 64 at a time.

   Every 64 bytes of a text have two words: where its lines end (LF, CR), and
   where a byte stands that inline structure can turn on: ` < [ \ ]. Both hold
   one bit more, at the end of the text, so that a search needs no bound. */

#ifndef TAILHOOK_MARKDOWN_H
#define TAILHOOK_MARKDOWN_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "cpu.h"

#define TAILHOOK_MARKS(length) (2 * ((length) / 64 + 2))

#define TAILHOOK_LINE_ENDS 0
#define TAILHOOK_SPECIALS 1

#if TAILHOOK_X86

/* A byte is told by its two nibbles: what its low nibble allows and what its
   high nibble allows have a bit in common. 1: LF CR, 2: <, 4: [ \ ], 8: `. */
TAILHOOK_AVX2 static inline void
tailhook_mark_32(const char *bytes, uint32_t *line_ends, uint32_t *specials)
{
    const __m256i low = _mm256_setr_epi8(8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 4, 2 | 4, 1 | 4, 0, 0,
                                         8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 4, 2 | 4, 1 | 4, 0, 0);
    const __m256i high = _mm256_setr_epi8(1, 0, 0, 2, 0, 4, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0,
                                          1, 0, 0, 2, 0, 4, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    __m256i v = _mm256_loadu_si256((const __m256i *)(const void *)bytes);
    __m256i upper = _mm256_and_si256(_mm256_srli_epi16(v, 4), _mm256_set1_epi8(15));
    __m256i told = _mm256_and_si256(_mm256_shuffle_epi8(low, v), _mm256_shuffle_epi8(high, upper));

    *line_ends = (uint32_t)_mm256_movemask_epi8(_mm256_slli_epi16(told, 7));
    *specials = (uint32_t)_mm256_movemask_epi8(_mm256_cmpgt_epi8(told, _mm256_set1_epi8(1)));
}

TAILHOOK_AVX2 static void
tailhook_mark_blocks_avx2(const char *bytes, size_t blocks, uint64_t *marks)
{
    for (size_t i = 0; i < blocks; i++) {
        uint32_t ends[2], specials[2];
        tailhook_mark_32(bytes + 64 * i, &ends[0], &specials[0]);
        tailhook_mark_32(bytes + 64 * i + 32, &ends[1], &specials[1]);
        marks[2 * i + TAILHOOK_LINE_ENDS] = ends[0] | (uint64_t)ends[1] << 32;
        marks[2 * i + TAILHOOK_SPECIALS] = specials[0] | (uint64_t)specials[1] << 32;
    }
}

#endif

static inline int
tailhook_is_line_end(unsigned char c)
{
    return c == '\n' || c == '\r';
}

static inline int
tailhook_is_special(unsigned char c)
{
    return c == '`' || c == '<' || (c >= '[' && c <= ']');
}

static void
tailhook_mark_blocks_portable(const char *bytes, size_t blocks, uint64_t *marks)
{
    for (size_t i = 0; i < blocks; i++) {
        uint64_t ends = 0, specials = 0;
#if TAILHOOK_X86
        for (unsigned at = 0; at < 64; at += 16) {
            __m128i v = _mm_loadu_si128((const __m128i *)(const void *)(bytes + 64 * i + at));
            __m128i from_bracket = _mm_sub_epi8(v, _mm_set1_epi8('['));
            __m128i bracket = _mm_cmpeq_epi8(_mm_min_epu8(from_bracket, _mm_set1_epi8(2)), from_bracket);
            __m128i tick = _mm_cmpeq_epi8(v, _mm_set1_epi8('`'));
            __m128i less = _mm_cmpeq_epi8(v, _mm_set1_epi8('<'));
            __m128i lf = _mm_cmpeq_epi8(v, _mm_set1_epi8('\n'));
            __m128i cr = _mm_cmpeq_epi8(v, _mm_set1_epi8('\r'));
            ends |= (uint64_t)(uint32_t)_mm_movemask_epi8(_mm_or_si128(lf, cr)) << at;
            specials |= (uint64_t)(uint32_t)_mm_movemask_epi8(_mm_or_si128(bracket, _mm_or_si128(tick, less))) << at;
        }
#else
        for (unsigned at = 0; at < 64; at++) {
            unsigned char c = (unsigned char)bytes[64 * i + at];
            ends |= (uint64_t)tailhook_is_line_end(c) << at;
            specials |= (uint64_t)tailhook_is_special(c) << at;
        }
#endif
        marks[2 * i + TAILHOOK_LINE_ENDS] = ends;
        marks[2 * i + TAILHOOK_SPECIALS] = specials;
    }
}

static inline void
tailhook_mark_blocks(const char *bytes, size_t blocks, uint64_t *marks)
{
#if TAILHOOK_X86
    if (tailhook_has_avx2()) {
        tailhook_mark_blocks_avx2(bytes, blocks, marks);
        return;
    }
#endif
    tailhook_mark_blocks_portable(bytes, blocks, marks);
}

/* marks: room for TAILHOOK_MARKS(length) words. */
static void
tailhook_mark(const char *text, size_t length, uint64_t *marks)
{
    size_t blocks = length / 64, rest = length % 64;
    uint64_t *last = marks + 2 * blocks;
    char tail[64] = {0};

    tailhook_mark_blocks(text, blocks, marks);
    memcpy(tail, text + 64 * blocks, rest);
    tailhook_mark_blocks(tail, 1, last);
    last[TAILHOOK_LINE_ENDS] |= (uint64_t)1 << rest;
    last[TAILHOOK_SPECIALS] |= (uint64_t)1 << rest;
    last[2 + TAILHOOK_LINE_ENDS] = last[2 + TAILHOOK_SPECIALS] = 0;
}

/* The first position >= `position` (<= length) that has a mark of this kind. The 64 bytes from there on are looked at
   first, wherever the blocks lie: nearly all answers are there, and a branch that is nearly always taken is free. */
static inline size_t
tailhook_next_mark(const uint64_t *marks, int kind, size_t position)
{
    const uint64_t *word = marks + 2 * (position / 64) + kind;
    uint64_t bits = word[0] >> position % 64 | word[2] << 1 << (63 - position % 64);

    if (TAILHOOK_LIKELY(bits != 0))
        return position + (size_t)__builtin_ctzll(bits);
    do
        word += 2;
    while (*word == 0);
    return (size_t)(word - marks) / 2 * 64 + (size_t)__builtin_ctzll(*word);
}

/* May a line that starts with this byte be anything but text of a paragraph?
   Blank space and line endings count: what comes after them may. */
static inline int
tailhook_may_start_block(unsigned char c)
{
#define BIT(c) ((uint64_t)1 << ((c) % 64))
    static const uint64_t starts[4] = {
        BIT('\t') | BIT('\n') | BIT('\r') | BIT(' ') | BIT('#') | BIT('*') | BIT('+') | BIT('-') | BIT('<') | BIT('=') |
            BIT('>') | (uint64_t)0x3FF << '0',
        BIT('_') | BIT('`') | BIT('~'),
    };
#undef BIT
    return (int)(starts[c / 64] >> c % 64 & 1);
}

/* Which of text[64 * block ...] start a code point: all but continuation bytes, and all past the end. */
static inline uint64_t
tailhook_code_point_starts(const char *text, size_t length, size_t block)
{
    const char *bytes = text + 64 * block;
    char tail[64] = {0};
    uint64_t starts = 0;

    if (length - 64 * block < sizeof tail) {
        memcpy(tail, bytes, length - 64 * block);
        bytes = tail;
    }
#if TAILHOOK_X86
    for (unsigned at = 0; at < 64; at += 16) {
        __m128i v = _mm_loadu_si128((const __m128i *)(const void *)(bytes + at));
        starts |= (uint64_t)(uint32_t)_mm_movemask_epi8(_mm_cmpgt_epi8(v, _mm_set1_epi8(-65))) << at;
    }
#else
    for (unsigned at = 0; at < 64; at++)
        starts |= (uint64_t)(((unsigned char)bytes[at] & 0xC0) != 0x80) << at;
#endif
    return starts;
}

static inline size_t
tailhook_count_code_points(const char *text, size_t length)
{
    size_t count = 0;
    for (size_t i = 0; i < length; i++)
        count += ((unsigned char)text[i] & 0xC0) != 0x80;
    return count;
}

typedef struct {
    size_t start, end; /* offsets into the text, end exclusive */
    int kind;
} tailhook_span;

static inline __attribute__((always_inline)) void
tailhook_spans_to_code_points_here(const char *text, size_t length, tailhook_span *spans, size_t count)
{
    size_t block = 0, before = 0;
    uint64_t starts = tailhook_code_point_starts(text, length, 0);

    for (size_t i = 0; i < 2 * count; i++) {
        size_t *offset = i % 2 ? &spans[i / 2].end : &spans[i / 2].start;
        for (; block < *offset / 64; block++) {
            before += (size_t)__builtin_popcountll(starts);
            starts = tailhook_code_point_starts(text, length, block + 1);
        }
        *offset = before + (size_t)__builtin_popcountll(starts & (((uint64_t)1 << *offset % 64) - 1));
    }
}

#if TAILHOOK_X86
TAILHOOK_AVX2 static void
tailhook_spans_to_code_points_avx2(const char *text, size_t length, tailhook_span *spans, size_t count)
{
    tailhook_spans_to_code_points_here(text, length, spans, count);
}
#endif

/* The offsets of spans, which ascend, from bytes of UTF-8 to code points. */
static void
tailhook_spans_to_code_points(const char *text, size_t length, tailhook_span *spans, size_t count)
{
#if TAILHOOK_X86
    if (tailhook_has_avx2()) { /* for its popcnt */
        tailhook_spans_to_code_points_avx2(text, length, spans, count);
        return;
    }
#endif
    tailhook_spans_to_code_points_here(text, length, spans, count);
}

/* Tag names that start an HTML block of kind 6 (CommonMark 4.6). */
static const char tailhook_html_blocks[][11] = {
    "address", "article", "aside", "base", "basefont", "blockquote", "body", "caption", "center", "col",
    "colgroup", "dd", "details", "dialog", "dir", "div", "dl", "dt", "fieldset", "figcaption", "figure",
    "footer", "form", "frame", "frameset", "h1", "h2", "h3", "h4", "h5", "h6", "head", "header", "hr",
    "html", "iframe", "legend", "li", "link", "main", "menu", "menuitem", "nav", "noframes", "ol",
    "optgroup", "option", "p", "param", "search", "section", "summary", "table", "tbody", "td", "tfoot",
    "th", "thead", "title", "tr", "track", "ul",
};

/* ... and of kind 1, whose end tags end it. */
static const char tailhook_html_raw[][11] = {"pre", "script", "style", "textarea"};

/* Is text[0..length) one of the names, in any case? */
static inline int
tailhook_is_name_in(const char *text, size_t length, const char (*names)[11], size_t count)
{
    char lower[11] = {0};

    if (length == 0 || length >= sizeof lower)
        return 0;
    for (size_t i = 0; i < length; i++)
        lower[i] = (char)(text[i] | 0x20);
    for (size_t i = 0; i < count; i++)
        if (memcmp(lower, names[i], sizeof lower) == 0)
            return 1;
    return 0;
}

static inline int
tailhook_is_html_block(const char *text, size_t length)
{
    return tailhook_is_name_in(text, length, tailhook_html_blocks,
                               sizeof tailhook_html_blocks / sizeof tailhook_html_blocks[0]);
}

static inline int
tailhook_is_html_raw(const char *text, size_t length)
{
    return tailhook_is_name_in(text, length, tailhook_html_raw,
                               sizeof tailhook_html_raw / sizeof tailhook_html_raw[0]);
}

#endif
