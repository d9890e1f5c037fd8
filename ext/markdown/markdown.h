/* The first bytes of the Markdown rules, and how they are found 64 at a time.

   Every 64 bytes of a text have two words of marks: one bit for each line end, and one for each byte at which inline
   structure may begin or end. Both have one more bit set at the end of the text, so that a search needs no bound. */

#ifndef TAILHOOK_MARKDOWN_H
#define TAILHOOK_MARKDOWN_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "cpu.h"
#include "text/utf8.h"

/* ---- the bytes ----------------------------------------------------------------

   Each set of bytes is one list here; all tests and tables below are made from it. A rule for a new first byte needs
   that byte in its list, otherwise the rule is never asked. tests/unit/test_portable_c.py compares the tests and
   tables. */

#define TAILHOOK_LINE_END_BYTES(USE, with) USE('\n', with) USE('\r', with)

/* Where inline structure may begin or end (inlines.pxi, md_read_prose: one branch for each). From 0x20 to 0x7f. */
#define TAILHOOK_SPECIAL_BYTES(USE, with) \
    USE('`', with) USE('<', with) USE('[', with) USE('\\', with) USE(']', with)

/* The first bytes, behind blanks, of all lines that are not text of a paragraph (blocks.pxi, md_start_leaf and
   md_open_container). Blanks and line ends count: the byte after them may begin a block. */
#define TAILHOOK_BLOCK_START_BYTES(USE, with) \
    USE('\t', with) USE(' ', with) USE('\n', with) USE('\r', with) /* blank */ \
    USE('#', with) USE('=', with) USE('`', with) USE('~', with) USE('<', with) USE('_', with) /* leaf blocks */ \
    USE('*', with) USE('-', with) /* a thematic break, a list item */ \
    USE('>', with) USE('+', with) USE('0', with) USE('1', with) USE('2', with) USE('3', with) USE('4', with) \
    USE('5', with) USE('6', with) USE('7', with) USE('8', with) USE('9', with) /* containers */

#define TAILHOOK_OR_EQUAL(byte, value) || (value) == (byte)
#define TAILHOOK_BIT_IN_WORD(byte, word) | ((byte) / 64 == (word) ? (uint64_t)1 << (byte) % 64 : 0)

static inline int
tailhook_is_line_end(unsigned char c)
{
    return 0 TAILHOOK_LINE_END_BYTES(TAILHOOK_OR_EQUAL, c);
}

static inline int
tailhook_is_special(unsigned char c)
{
    return 0 TAILHOOK_SPECIAL_BYTES(TAILHOOK_OR_EQUAL, c);
}

static inline int
tailhook_may_start_block(unsigned char c)
{
    static const uint64_t starts[4] = {
        0 TAILHOOK_BLOCK_START_BYTES(TAILHOOK_BIT_IN_WORD, 0),
        0 TAILHOOK_BLOCK_START_BYTES(TAILHOOK_BIT_IN_WORD, 1),
    };
    return (int)(starts[c / 64] >> c % 64 & 1);
}

/* ---- marks -------------------------------------------------------------------- */

#define TAILHOOK_MARKS(length) (2 * ((length) / 64 + 2))

#define TAILHOOK_LINE_ENDS 0
#define TAILHOOK_SPECIALS 1

#if TAILHOOK_X86

/* A byte is recognised by its two halves, looked up in two tables of 16 entries. Each upper half has a bit of its own.
   The entry of an upper half is that bit. The entry of a lower half has the bits of all upper halves that form a byte
   of the lists with it. The upper half of line ends, 0, has the lowest bit. */
#define TAILHOOK_HALF_BIT(upper) ((upper) < 2 ? 1 : 1 << ((upper) - 1))
#define TAILHOOK_IN_ROW(byte, lower) | ((byte) % 16 == (lower) ? TAILHOOK_HALF_BIT((byte) / 16) : 0)
#define TAILHOOK_ROW(lower) \
    (0 TAILHOOK_LINE_END_BYTES(TAILHOOK_IN_ROW, lower) TAILHOOK_SPECIAL_BYTES(TAILHOOK_IN_ROW, lower))
#define TAILHOOK_16_TIMES(ENTRY) \
    ENTRY(0), ENTRY(1), ENTRY(2), ENTRY(3), ENTRY(4), ENTRY(5), ENTRY(6), ENTRY(7), ENTRY(8), ENTRY(9), ENTRY(10), \
        ENTRY(11), ENTRY(12), ENTRY(13), ENTRY(14), ENTRY(15)
#define TAILHOOK_UPPER(upper) ((upper) == 0 || ((upper) > 1 && (upper) < 8) ? TAILHOOK_HALF_BIT(upper) : 0)
#define TAILHOOK_ASSERT_RANGE(byte, with) _Static_assert((byte) >= 0x20 && (byte) < 0x80, "a bit for each upper half");
TAILHOOK_SPECIAL_BYTES(TAILHOOK_ASSERT_RANGE, )

TAILHOOK_AVX2 static inline void
tailhook_mark_32(const char *bytes, uint32_t *line_ends, uint32_t *specials)
{
    const __m256i low = _mm256_setr_epi8(TAILHOOK_16_TIMES(TAILHOOK_ROW), TAILHOOK_16_TIMES(TAILHOOK_ROW));
    const __m256i high = _mm256_setr_epi8(TAILHOOK_16_TIMES(TAILHOOK_UPPER), TAILHOOK_16_TIMES(TAILHOOK_UPPER));
    __m256i v = _mm256_loadu_si256((const __m256i *)(const void *)bytes);
    __m256i upper = _mm256_and_si256(_mm256_srli_epi16(v, 4), _mm256_set1_epi8(15));
    __m256i found = _mm256_and_si256(_mm256_shuffle_epi8(low, v), _mm256_shuffle_epi8(high, upper));

    *line_ends = (uint32_t)_mm256_movemask_epi8(_mm256_slli_epi16(found, 7));
    *specials = (uint32_t)_mm256_movemask_epi8(_mm256_cmpgt_epi8(found, _mm256_set1_epi8(1)));
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

#define TAILHOOK_OR_EQUAL_16(byte, v) found = _mm_or_si128(found, _mm_cmpeq_epi8(v, _mm_set1_epi8(byte)));

static void
tailhook_mark_blocks_portable(const char *bytes, size_t blocks, uint64_t *marks)
{
    for (size_t i = 0; i < blocks; i++) {
        uint64_t ends = 0, specials = 0;
#if TAILHOOK_X86
        for (unsigned at = 0; at < 64; at += 16) {
            __m128i v = _mm_loadu_si128((const __m128i *)(const void *)(bytes + 64 * i + at));
            __m128i found = _mm_setzero_si128();
            TAILHOOK_LINE_END_BYTES(TAILHOOK_OR_EQUAL_16, v)
            ends |= (uint64_t)(uint32_t)_mm_movemask_epi8(found) << at;
            found = _mm_setzero_si128();
            TAILHOOK_SPECIAL_BYTES(TAILHOOK_OR_EQUAL_16, v)
            specials |= (uint64_t)(uint32_t)_mm_movemask_epi8(found) << at;
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

/* Mark a whole text. marks: room for TAILHOOK_MARKS(length) words. */
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

/* Return the first position at or after `position` (<= length) that has a mark of this kind. The 64 bytes from there on
   are looked at first, even across two blocks: nearly all answers are there, and a branch that is nearly always taken
   costs nothing. */
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

typedef struct {
    size_t start, end; /* offsets into the text, end exclusive */
    int kind;
} tailhook_span;

/* Change the ascending offsets of spans from bytes of UTF-8 to code points. */
static void
tailhook_spans_to_code_points(const char *text, tailhook_span *spans, size_t count)
{
    const tailhook_cursor bytes = (tailhook_cursor)text;
    size_t byte = 0, before = 0;

    for (size_t i = 0; i < 2 * count; i++) {
        size_t *offset = i % 2 ? &spans[i / 2].end : &spans[i / 2].start;
        before += tailhook_utf8_count(bytes + byte, bytes + *offset);
        byte = *offset;
        *offset = before;
    }
}

/* ---- HTML blocks -------------------------------------------------------------- */

/* Tag names that start an HTML block of kind 6 (CommonMark 4.6), */
static const char tailhook_html_blocks[][11] = {
    "address", "article", "aside", "base", "basefont", "blockquote", "body", "caption", "center", "col",
    "colgroup", "dd", "details", "dialog", "dir", "div", "dl", "dt", "fieldset", "figcaption", "figure",
    "footer", "form", "frame", "frameset", "h1", "h2", "h3", "h4", "h5", "h6", "head", "header", "hr",
    "html", "iframe", "legend", "li", "link", "main", "menu", "menuitem", "nav", "noframes", "ol",
    "optgroup", "option", "p", "param", "search", "section", "summary", "table", "tbody", "td", "tfoot",
    "th", "thead", "title", "tr", "track", "ul",
};

/* and of kind 1, whose end tags end it. */
static const char tailhook_html_raw[][11] = {"pre", "script", "style", "textarea"};

/* Return whether text[0..length) is one of the names, in any case. */
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
