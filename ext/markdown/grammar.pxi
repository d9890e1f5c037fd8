# The inline and reference grammar: the pieces of a line or of prose.
#
# Gives: MdProse; md_is_* of bytes, md_peek, md_skip_*, md_find, md_stands_at, md_after_line_end, md_after_escape; the
# functions md_*_end for list markers, links, definitions, tags and autolinks.
# Needs: markdown.h.
#
# The content of a paragraph lies in the text, with the prefixes of its containers between its lines. The prefix of a
# line after the first consists of spaces, tabs and >, so a search for any other byte may run across it. Code that must
# not see the prefix steps to the next line with md_after_line_end.
#
# The functions named *_end return the position after the piece that starts at p, or 0 if there is none: no piece ends
# at the start of the text.

cdef struct MdProse:
    const char* text
    size_t end
    const size_t* lines     # where the content of each line starts, except the first line of each prose; ascending
    size_t line_count
    size_t line             # an index into lines near the position
    uint64_t* dead          # see md_value_end; NULL if there is only one try


cdef inline bint md_is_letter(char c) noexcept nogil:
    return c'a' <= (c | 0x20) <= c'z'


cdef inline bint md_is_digit(char c) noexcept nogil:
    return c'0' <= c <= c'9'


cdef inline bint md_is_space_or_tab(char c) noexcept nogil:
    return c == c' ' or c == c'\t'


cdef inline bint md_is_punctuation(char c) noexcept nogil:
    return c'!' <= c <= c'~' and not md_is_letter(c) and not md_is_digit(c)


cdef inline size_t md_list_marker_end(const char* text, size_t p, size_t end) noexcept nogil:
    """Return the position after the list marker at p (section 5.2), or 0 if there is none.

    A space, a tab or the end follows a marker.
    """
    cdef size_t start = p
    if md_is_digit(text[p]):
        while p < end and p < start + 10 and md_is_digit(text[p]):
            p += 1
        if p - start > 9 or p == end or (text[p] != c'.' and text[p] != c')'):
            return 0
    elif text[p] != c'-' and text[p] != c'+' and text[p] != c'*':
        return 0
    p += 1
    return p if p == end or md_is_space_or_tab(text[p]) else 0


cdef inline bint md_is_one(const char* text, size_t p, size_t end) noexcept nogil:
    """Return whether the digits text[p:end) are the number 1."""
    while p + 1 < end and text[p] == c'0':
        p += 1
    return p + 1 == end and text[p] == c'1'


cdef inline char md_peek(const MdProse* prose, size_t p) noexcept nogil:
    """Return the byte at p, or NUL, which means nothing in Markdown, after the end of the prose."""
    return prose.text[p] if p < prose.end else c'\0'


cdef size_t md_after_line_end(MdProse* prose, size_t p) noexcept nogil:
    """Return the start of the next line's content. p: at the line end.

    Positions mostly ascend, so the index walks. It walks back no more than it walked forward.
    """
    while prose.line < prose.line_count and prose.lines[prose.line] <= p:
        prose.line += 1
    while prose.line > 0 and prose.lines[prose.line - 1] > p:
        prose.line -= 1
    if prose.line == prose.line_count or prose.lines[prose.line] > prose.end:
        return prose.end
    return prose.lines[prose.line]


cdef inline size_t md_skip_spaces(const MdProse* prose, size_t p) noexcept nogil:
    while p < prose.end and md_is_space_or_tab(prose.text[p]):
        p += 1
    return p


cdef inline size_t md_skip_white_space(MdProse* prose, size_t p) noexcept nogil:
    """Skip spaces, tabs and line ends. No prose has an empty line."""
    while p < prose.end:
        if md_is_space_or_tab(prose.text[p]):
            p += 1
        elif md_is_line_end(prose.text[p]):
            p = md_after_line_end(prose, p)
        else:
            break
    return p


cdef inline size_t md_after_escape(const MdProse* prose, size_t p) noexcept nogil:
    """Skip the backslash at p and the byte that it escapes (section 2.4)."""
    return p + 2 if md_is_punctuation(md_peek(prose, p + 1)) else p + 1


cdef size_t md_find(const char* text, size_t p, size_t end, Literal what) noexcept nogil:
    """Return the first place of `what` in text[p:end), or `end`."""
    cdef const char* at
    cdef size_t i
    while p + what.size <= end:
        at = <const char*> memchr(text + p, what.text[0], end - p - what.size + 1)
        if at == NULL:
            break
        i = 1
        while i < what.size and at[i] == what.text[i]:
            i += 1
        if i == what.size:
            return <size_t> (at - text)
        p = <size_t> (at - text) + 1
    return end


cdef inline bint md_stands_at(const MdProse* prose, size_t p, Literal what) noexcept nogil:
    return p + what.size <= prose.end and bytes_begin(prose.text + p, what)


# ---- links: labels, destinations, titles (sections 4.7 and 6.3) ---------------

cdef size_t md_label_end(MdProse* prose, size_t p) noexcept nogil:
    """Return the position after the link label whose [ is at p, or 0."""
    cdef size_t characters = 0, stop
    cdef bint blank = True
    p += 1
    while p < prose.end and characters < 1000:
        c = prose.text[p]
        if c == c']':
            return 0 if blank else p + 1
        if c == c'[':
            return 0
        if md_is_line_end(c):
            p = md_after_line_end(prose, p)
            characters += 1
            continue
        if not md_is_space_or_tab(c):
            blank = False
        stop = md_after_escape(prose, p) if c == c'\\' else p + 1
        characters += stop - p - ((c & 0xC0) == 0x80)   # escaped bytes are ASCII
        p = stop
    return 0


cdef size_t md_destination_end(const MdProse* prose, size_t p) noexcept nogil:
    """Return the position after a link destination, or 0. Without <> it may be empty and end at p."""
    cdef int depth = 0
    if md_peek(prose, p) == c'<':
        p += 1
        while p < prose.end:
            c = prose.text[p]
            if c == c'>':
                return p + 1
            if c == c'<' or md_is_line_end(c):
                return 0
            p = md_after_escape(prose, p) if c == c'\\' else p + 1
        return 0
    while p < prose.end:
        c = prose.text[p]
        if c == c'\\':
            p = md_after_escape(prose, p)
            continue
        if c == c'(':
            depth += 1
            if depth > 32:          # the standard allows a limit; cmark and the oracle have this one
                return 0
        elif c == c')':
            if depth == 0:
                break
            depth -= 1
        elif c == c' ' or c == c'\x7f' or c'\0' < c < c' ':
            break
        p += 1
    return p if depth == 0 else 0


cdef size_t md_title_end(const MdProse* prose, size_t p) noexcept nogil:
    cdef char opening = md_peek(prose, p)
    cdef char closing = c')' if opening == c'(' else opening
    if opening != c'"' and opening != c"'" and opening != c'(':
        return 0
    p += 1
    while p < prose.end:
        c = prose.text[p]
        if c == closing:
            return p + 1
        if c == opening:
            return 0
        p = md_after_escape(prose, p) if c == c'\\' else p + 1
    return 0


cdef size_t md_link_tail_end(MdProse* prose, size_t p) noexcept nogil:
    """Return the position after the tail of an inline link, or 0. p: at the tail's (."""
    cdef size_t end
    p = md_destination_end(prose, md_skip_white_space(prose, p + 1))
    if p == 0:
        return 0
    end = md_skip_white_space(prose, p)
    if end > p and md_peek(prose, end) != c')':
        end = md_title_end(prose, end)
        if end == 0:
            return 0
        end = md_skip_white_space(prose, end)
    return end + 1 if md_peek(prose, end) == c')' else 0


cdef size_t md_line_rest_end(MdProse* prose, size_t p) noexcept nogil:
    """Return the start of the next line's content if only spaces and tabs come before the line end, otherwise 0."""
    p = md_skip_spaces(prose, p)
    if p == prose.end:
        return p
    return md_after_line_end(prose, p) if md_is_line_end(prose.text[p]) else 0


cdef size_t md_definition_end(MdProse* prose, size_t p, size_t* label) noexcept nogil:
    """Return the start of the line after the link reference definition at p, or 0. label: set to after its ]."""
    cdef size_t end, start, title, bare
    if md_peek(prose, p) != c'[':
        return 0
    label[0] = md_label_end(prose, p)
    if label[0] == 0 or md_peek(prose, label[0]) != c':':
        return 0
    start = md_skip_white_space(prose, label[0] + 1)
    end = md_destination_end(prose, start)
    if end == 0 or end == start:
        return 0
    bare = md_line_rest_end(prose, end)
    title = md_skip_white_space(prose, end)
    if title > end:
        title = md_title_end(prose, title)
        if title:
            title = md_line_rest_end(prose, title)
            if title:
                return title
    return bare


# ---- raw HTML and autolinks (sections 6.5 and 6.6) -----------------------------

cdef size_t md_tag_name_end(const MdProse* prose, size_t p) noexcept nogil:
    if not md_is_letter(md_peek(prose, p)):
        return 0
    while md_is_letter(md_peek(prose, p)) or md_is_digit(md_peek(prose, p)) or md_peek(prose, p) == c'-':
        p += 1
    return p


cdef inline bint md_is_attribute_start(char c) noexcept nogil:
    return md_is_letter(c) or c == c'_' or c == c':'


cdef inline bint md_is_attribute_byte(char c) noexcept nogil:
    return md_is_attribute_start(c) or md_is_digit(c) or c == c'.' or c == c'-'


cdef size_t md_value_end(MdProse* prose, size_t p) noexcept nogil:
    """Return the position after an attribute's value, or 0.

    If a tag fails, each < inside its quoted values is tried as a tag. To keep this linear, the quotation marks reached
    by a try are noted in prose.dead: a try that reaches one again fails, like the last one. Outside quoted values there
    is no <, so two tries share nothing else.
    """
    cdef const char* closing
    cdef uint64_t bit
    cdef size_t start = p
    if md_peek(prose, p) == c'"' or md_peek(prose, p) == c"'":
        if prose.dead != NULL:
            bit = (<uint64_t> 1) << (p % 64)
            if prose.dead[p // 64] & bit:
                return 0
            prose.dead[p // 64] |= bit
        closing = <const char*> memchr(prose.text + p + 1, prose.text[p], prose.end - p - 1)
        return <size_t> (closing - prose.text) + 1 if closing != NULL else 0
    while p < prose.end and prose.text[p] not in (c' ', c'\t', c'\n', c'\r', c'"', c"'", c'=', c'<', c'>', c'`'):
        p += 1
    return p if p > start else 0


cdef size_t md_attribute_end(MdProse* prose, size_t p) noexcept nogil:
    cdef size_t sign
    while md_is_attribute_byte(md_peek(prose, p)):
        p += 1
    sign = md_skip_white_space(prose, p)
    return md_value_end(prose, md_skip_white_space(prose, sign + 1)) if md_peek(prose, sign) == c'=' else p


cdef size_t md_tag_end(MdProse* prose, size_t p) noexcept nogil:
    """Return the position after the open or closing tag whose < is at p, or 0."""
    cdef size_t next
    if md_peek(prose, p + 1) == c'/':
        p = md_tag_name_end(prose, p + 2)
        if p == 0:
            return 0
        p = md_skip_white_space(prose, p)
        return p + 1 if md_peek(prose, p) == c'>' else 0
    p = md_tag_name_end(prose, p + 1)
    while p:
        next = md_skip_white_space(prose, p)
        if md_peek(prose, next) == c'/':
            next += 1
            return next + 1 if md_peek(prose, next) == c'>' else 0
        if md_peek(prose, next) == c'>':
            return next + 1
        p = md_attribute_end(prose, next) if next > p and md_is_attribute_start(md_peek(prose, next)) else 0
    return 0


cdef inline bint md_is_mail_character(char c) noexcept nogil:
    return md_is_letter(c) or md_is_digit(c) or (
        md_is_punctuation(c) and c not in (c'"', c'(', c')', c',', c':', c';', c'<', c'>', c'@', c'[', c'\\', c']')
    )


cdef size_t md_mail_address_end(const MdProse* prose, size_t p) noexcept nogil:
    cdef size_t start = p
    while md_is_mail_character(md_peek(prose, p)):
        p += 1
    if p == start or md_peek(prose, p) != c'@':
        return 0
    while True:
        p += 1                      # skip the @ or the dot
        start = p
        while md_is_letter(md_peek(prose, p)) or md_is_digit(md_peek(prose, p)) or md_peek(prose, p) == c'-':
            p += 1
        if p == start or p - start > 63 or prose.text[start] == c'-' or prose.text[p - 1] == c'-':
            return 0
        if md_peek(prose, p) != c'.':
            return p


cdef size_t md_uri_end(const MdProse* prose, size_t p) noexcept nogil:
    """Return the position after an absolute URI, or 0: a scheme of 2 to 32 characters, a colon, no spaces or < >."""
    cdef size_t start = p
    if not md_is_letter(md_peek(prose, p)):
        return 0
    while md_is_letter(md_peek(prose, p)) or md_is_digit(md_peek(prose, p)) or md_peek(prose, p) in (c'+', c'.', c'-'):
        p += 1
    if p - start < 2 or p - start > 32 or md_peek(prose, p) != c':':
        return 0
    while p < prose.end and prose.text[p] not in (c'<', c'>') and not c'\0' < prose.text[p] <= c' ':
        p += 1
    return p


cdef size_t md_autolink_end(const MdProse* prose, size_t p) noexcept nogil:
    """Return the position after the autolink whose < is at p, or 0."""
    cdef size_t end = md_uri_end(prose, p + 1)
    if md_peek(prose, end) != c'>' or end == 0:
        end = md_mail_address_end(prose, p + 1)
    return end + 1 if end and md_peek(prose, end) == c'>' else 0
