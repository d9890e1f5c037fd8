/* The table of a pattern set, in the layout of src/tailhook/patterns/automaton.py.

   The bytes are constants of the build, or come from a user's compiled set. tailhook_table_view only sets pointers into
   them: nothing is copied, so a built-in set costs nothing before its use. */

#ifndef TAILHOOK_AUTOMATON_H
#define TAILHOOK_AUTOMATON_H

#include <stddef.h>
#include <stdint.h>

#define TAILHOOK_TABLE_MAGIC 0x74616231u
#define TAILHOOK_WINDOW 6       /* max bytes of a literal that the prefilter compares */
#define TAILHOOK_GROUPS 2       /* max groups of eight buckets */
#define TAILHOOK_HASH_BITS 11
#define TAILHOOK_CHECK_BACK 4   /* max bytes before a window that are compared */
#define TAILHOOK_HASH_FACTOR 0x9E3779B1u
#define TAILHOOK_NO_CLASS 2u    /* cells at a row's end that are not classes: depth, first output */

/* A pattern. Its anchor is the part that the automaton finds. */
typedef struct {
    uint32_t text;              /* the start of its folded bytes in table.texts */
    uint32_t length;
    uint32_t anchor_start;      /* in these bytes */
    uint32_t anchor_end;
    uint32_t name;
} tailhook_pattern;

/* A pattern whose anchor ends at a state of the automaton. */
typedef struct {
    uint32_t pattern;
    uint32_t length;            /* of the anchor in bytes */
    uint32_t next;              /* 1 + index of the state's next output, or 0 */
} tailhook_output;

/* The common bytes of all literals with one hash, in and before their windows. */
typedef struct {
    uint32_t value[2];          /* eight bytes; ASCII in lower case if the set ignores case */
    uint32_t mask[2];           /* the bits that are compared */
    uint32_t back;              /* bytes from the value's start to the window */
} tailhook_check;

typedef struct {
    uint32_t magic;
    uint32_t words;             /* of four bytes, of the whole table */
    uint32_t fold;              /* bits that make letters lower case, 0 if case counts */
    uint32_t word;              /* 1: patterns begin and end at word boundaries */
    uint32_t wide;              /* 1: cells have 32 bits, not 16 */
    uint32_t stride;            /* cells of a row */
    uint32_t cells;
    uint32_t outputs;
    uint32_t patterns;
    uint32_t texts;             /* bytes */
    uint32_t groups;            /* of the prefilter's buckets, or 0 without a prefilter */
    uint32_t reach;             /* max bytes from a literal's start to its window */
    uint32_t hashed;            /* bits of a window's first four bytes that are hashed */
    uint32_t checks;
} tailhook_table_head;

typedef struct {
    const tailhook_table_head *head;
    const uint8_t *classes;     /* for each byte its cell in a row */
    const uint8_t *nibbles;     /* buckets, for each group, position and low or high half of a byte */
    const uint16_t *slots;      /* for each hash its check */
    const tailhook_check *checks;
    const tailhook_pattern *patterns;
    const tailhook_output *outputs;
    const uint8_t *texts;
    const void *cells;
} tailhook_table;

/* Point into a table. Return the number of words that its sections have according to the head. */
static uint64_t
tailhook_table_view(tailhook_table *table, const uint32_t *words)
{
    const tailhook_table_head *head = (const tailhook_table_head *)(const void *)words;
    const uint32_t *at = words + sizeof(*head) / 4;

    table->head = head;
    table->classes = (const uint8_t *)at;
    at += 256 / 4;
    table->nibbles = (const uint8_t *)at;
    at += TAILHOOK_GROUPS * TAILHOOK_WINDOW * 2 * 16 / 4;
    table->slots = (const uint16_t *)(const void *)at;
    at += (1u << TAILHOOK_HASH_BITS) / 2;
    table->checks = (const tailhook_check *)(const void *)at;
    at += (size_t)head->checks * (sizeof(tailhook_check) / 4);
    table->patterns = (const tailhook_pattern *)(const void *)at;
    at += (size_t)head->patterns * (sizeof(tailhook_pattern) / 4);
    table->outputs = (const tailhook_output *)(const void *)at;
    at += (size_t)head->outputs * (sizeof(tailhook_output) / 4);
    table->texts = (const uint8_t *)at;
    at += head->texts / 4;
    table->cells = at;
    return (uint64_t)(at - words) + (head->wide ? head->cells : ((uint64_t)head->cells + 1) / 2);
}

#endif
