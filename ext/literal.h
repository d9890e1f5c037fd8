/* A literal with its length: LIT("text"). The compiler counts the length. */

#ifndef TAILHOOK_LITERAL_H
#define TAILHOOK_LITERAL_H

#include <string.h>

/* By value, it is two registers; after inlining, two constants. */
struct tailhook_literal {
    const char *text;
    size_t size;
};

/* text: has no NUL, except at its end. */
static inline __attribute__((always_inline)) struct tailhook_literal
tailhook_lit(const char *text)
{
    const struct tailhook_literal literal = {text, strlen(text)};
    return literal;
}

/* Return whether a text of at least that length begins with the literal. */
static inline __attribute__((always_inline)) int
tailhook_begins(const void *text, struct tailhook_literal literal)
{
    return memcmp(text, literal.text, literal.size) == 0;
}

/* Return whether a text is the literal. */
static inline __attribute__((always_inline)) int
tailhook_equals(const void *text, size_t size, struct tailhook_literal literal)
{
    return size == literal.size && memcmp(text, literal.text, literal.size) == 0;
}

/* Return the first place of the literal in a text, or NULL. */
static inline const void *
tailhook_find(const void *text, size_t size, struct tailhook_literal literal)
{
    return memmem(text, size, literal.text, literal.size);
}

/* Write the literal without a NUL; return the position after it. */
static inline __attribute__((always_inline)) void *
tailhook_write(void *out, struct tailhook_literal literal)
{
    return (char *)memcpy(out, literal.text, literal.size) + literal.size;
}

#endif
