/* The one table of a pattern set, as src/tailhook/automaton.py lays it out.

   The same bytes come from the build, as constants of this module, or from a
   set that a user compiles. tailhook_table_view only points into them: nothing
   is copied, so a built-in set costs nothing before it is used. */

#ifndef TAILHOOK_AUTOMATON_H
#define TAILHOOK_AUTOMATON_H

#include <stddef.h>
#include <stdint.h>

#define TAILHOOK_TABLE_MAGIC 0x74616231u
#define TAILHOOK_WINDOW 6       /* bytes of a literal that the prefilter compares, at most */
#define TAILHOOK_GROUPS 2       /* of eight buckets, at most */
#define TAILHOOK_HASH_BITS 11
#define TAILHOOK_CHECK_BACK 4   /* bytes before a window that are compared, at most */
#define TAILHOOK_HASH_FACTOR 0x9E3779B1u
#define TAILHOOK_NO_CLASS 2u    /* cells of a row that are no classes: depth, first output */

/* What a set looks for. Its anchor is the part that the automaton finds. */
typedef struct {
    uint32_t text;              /* where its folded bytes begin in table.texts */
    uint32_t length;
    uint32_t anchor_start;      /* in those bytes */
    uint32_t anchor_end;
    uint32_t name;
} tailhook_pattern;

/* A pattern whose anchor ends at a state. */
typedef struct {
    uint32_t pattern;
    uint32_t length;            /* of the anchor as it was spelled, in bytes */
    uint32_t next;              /* 1 + the index of the state's next output; 0: none */
} tailhook_output;

/* What the literals of one hash have in common about their windows. */
typedef struct {
    uint32_t value[2];          /* eight bytes; ASCII in lower case if the set folds */
    uint32_t mask[2];           /* those that count */
    uint32_t back;              /* bytes from there to the window */
} tailhook_check;

typedef struct {
    uint32_t magic;
    uint32_t words;             /* of four bytes, all of the table */
    uint32_t fold;              /* bits that make ASCII letters alike, 0 where case counts */
    uint32_t word;              /* patterns begin and end at word boundaries */
    uint32_t wide;              /* cells have 32 bits, not 16 */
    uint32_t stride;            /* cells of a row */
    uint32_t cells;
    uint32_t outputs;
    uint32_t patterns;
    uint32_t texts;             /* bytes */
    uint32_t groups;            /* of the prefilter's buckets; 0: no prefilter */
    uint32_t reach;             /* bytes from a literal's start to its window, at most */
    uint32_t hashed;            /* bits of a window's first four bytes */
    uint32_t checks;
} tailhook_table_head;

typedef struct {
    const tailhook_table_head *head;
    const uint8_t *classes;     /* of each byte, its cell in a row */
    const uint8_t *nibbles;     /* of each group and position, 16 low and 16 high nibbles: buckets */
    const uint16_t *slots;      /* of each hash, its check */
    const tailhook_check *checks;
    const tailhook_pattern *patterns;
    const tailhook_output *outputs;
    const uint8_t *texts;
    const void *cells;
} tailhook_table;

/* Returns the number of words that the sections named by the head take. */
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
