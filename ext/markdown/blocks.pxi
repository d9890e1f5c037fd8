# ---- blocks (CommonMark 0.31.2, sections 3 to 5) -------------------------------
#
# A line is matched against the open containers from the outermost in; what is
# left may start new blocks, or be text. The cost must not depend on how many
# containers are open: a container costs time only when it takes bytes of the
# line (a list item takes columns of blank space, a block quote its >) or when it
# is closed. A blank line takes all list items up to the next block quote at
# once, and a lazy line leaves the containers it does not reach alone.
#
# Columns count from the line's start, tabs stopping at every fourth. A list item
# or the one optional blank after > may end inside a tab; so the margin, where the
# content of the matched containers starts, is a column, not a byte.

cdef enum:
    NO_LEAF
    PARAGRAPH
    FENCED
    INDENTED
    HTML


cdef struct Blocks:
    CodeMap* map
    const char* text
    # The line at hand
    size_t line             # its first byte,
    size_t end              # its line ending (or the text's end),
    size_t next             # and the byte after that.
    size_t first            # The first byte that is neither prefix nor blank,
    size_t column           # the column it stands at,
    size_t margin           # and the column at which the content of the matched containers starts.
    size_t no_rule_before   # no thematic break starts before this byte of the line
    # What is open, besides the containers
    bint bare               # the innermost container is a list item that began with a blank line, the last one
    int leaf
    size_t leaf_start       # of its line; of its content, if it is a paragraph
    size_t leaf_end         # of its last line; of its content, if it is a paragraph
    size_t leaf_lines       # how many lines the map had when the paragraph began
    char fence
    size_t fence_length
    int html                # which of the seven kinds (section 4.6)
    size_t special          # the first special byte not before the paragraph seen last


cdef inline size_t indent(const Blocks* b) noexcept nogil:
    return b.column - b.margin


cdef inline bint is_blank_line(const Blocks* b) noexcept nogil:
    return b.first == b.end


cdef inline void go_to(Blocks* b, size_t p, size_t column) noexcept nogil:
    """Put first and column on the first byte that is not blank, from p at `column`."""
    while p < b.end and is_blank(b.text[p]):
        column = column + 1 if b.text[p] == c' ' else column + 4 - column % 4
        p += 1
    b.first = p
    b.column = column


# ---- leaf blocks: closing -------------------------------------------------------

cdef inline int push_block(Blocks* b, size_t start, size_t end, int kind) noexcept nogil:
    return push_span(&b.map.blocks, &b.map.block_count, &b.map.block_capacity, start, end, kind)


cdef inline bint holds_special(Blocks* b, size_t start, size_t end) noexcept nogil:
    """Positions asked for ascend, so that no stretch without any is searched twice."""
    if b.special < start:
        b.special = tailhook_next_mark(b.map.marks, SPECIALS, start)
    return b.special < end


cdef int take_definitions(Blocks* b) noexcept nogil:
    """Move leaf_start past the definitions that the paragraph starts with (section 4.7). 0, or -1: out of memory."""
    cdef CodeMap* map = b.map
    cdef Prose prose
    cdef size_t label = 0, end
    prose.text = b.text
    prose.end = b.leaf_end
    prose.lines = map.lines
    prose.line_count = map.line_count
    prose.line = b.leaf_lines
    prose.dead = NULL
    while b.leaf_start < b.leaf_end and b.text[b.leaf_start] == c'[':
        end = definition_end(&prose, b.leaf_start, &label)
        if end == 0:
            break
        if push_span(&map.labels, &map.label_count, &map.label_capacity, b.leaf_start + 1, label - 1, 0) < 0:
            return -1
        b.leaf_start = end
        b.leaf_lines = map.line_count       # the labels may need these lines: keep them
    return 0


cdef int close_paragraph(Blocks* b) noexcept nogil:
    if b.text[b.leaf_start] == c'[' and take_definitions(b) < 0:
        return -1
    if holds_special(b, b.leaf_start, b.leaf_end):
        return push_block(b, b.leaf_start, b.leaf_end, PROSE)
    b.map.line_count = b.leaf_lines
    return 0


cdef int close_leaf(Blocks* b) noexcept nogil:
    cdef int leaf = b.leaf
    b.leaf = NO_LEAF
    if leaf == PARAGRAPH:
        return close_paragraph(b)
    if leaf == FENCED or leaf == INDENTED:
        return push_block(b, b.leaf_start, b.leaf_end, CODE_FENCE if leaf == FENCED else CODE_INDENTED)
    if leaf == HTML and b.html <= 2:
        return push_block(b, b.leaf_start, b.leaf_end, CODE_RAW if b.html == 1 else CODE_COMMENT)
    return 0


cdef int close_to(Blocks* b, size_t depth) noexcept nogil:
    """Close the leaf and every container deeper than `depth`."""
    cdef CodeMap* map = b.map
    map.depth = depth
    while map.quote_count and map.quotes[map.quote_count - 1] >= depth:
        map.quote_count -= 1
    b.bare = False
    return close_leaf(b)


# ---- leaf blocks: opening -------------------------------------------------------

cdef inline void open_leaf(Blocks* b, int leaf) noexcept nogil:
    b.leaf = leaf
    b.leaf_start = b.line
    b.leaf_end = b.next


cdef inline int add_text(Blocks* b, size_t first) noexcept nogil:
    """The line from `first` on is text: of the open paragraph, or of a new one. 0, or -1: out of memory."""
    cdef CodeMap* map = b.map
    if b.leaf == PARAGRAPH:
        if push_offset(&map.lines, &map.line_count, &map.line_capacity, first) < 0:
            return -1
    else:
        b.leaf = PARAGRAPH
        b.leaf_start = first
        b.leaf_lines = map.line_count
    b.leaf_end = b.end
    return 0


cdef size_t run_end(const Blocks* b, size_t p) noexcept nogil:
    """Past the run of the byte at p."""
    cdef char c = b.text[p]
    while p < b.end and b.text[p] == c:
        p += 1
    return p


cdef bint only_blanks_from(const Blocks* b, size_t p) noexcept nogil:
    while p < b.end and is_blank(b.text[p]):
        p += 1
    return p == b.end


cdef bint starts_rule(Blocks* b) noexcept nogil:
    """Section 4.1. Where one try fails, all from a byte before that one do: remembered, as items may nest here."""
    cdef size_t p = b.first, count = 0
    cdef char c = b.text[p]
    if p < b.no_rule_before:
        return False
    while p < b.end and (b.text[p] == c or is_blank(b.text[p])):
        if b.text[p] == c:
            count += 1
        p += 1
    if p == b.end:
        return count >= 3
    b.no_rule_before = p
    return False


cdef bint starts_heading(const Blocks* b) noexcept nogil:
    """Section 4.2."""
    cdef size_t end = run_end(b, b.first)
    return end - b.first <= 6 and (end == b.end or is_blank(b.text[end]))


cdef bint is_underline(const Blocks* b) noexcept nogil:
    """Section 4.3."""
    return only_blanks_from(b, run_end(b, b.first))


cdef bint starts_fence(const Blocks* b) noexcept nogil:
    """Section 4.5."""
    cdef size_t end = run_end(b, b.first)
    if end - b.first < 3:
        return False
    return b.text[b.first] == c'~' or memchr(b.text + end, c'`', b.end - end) == NULL


cdef bint ends_fence(const Blocks* b) noexcept nogil:
    cdef size_t end
    if is_blank_line(b) or b.text[b.first] != b.fence or indent(b) > 3:
        return False
    end = run_end(b, b.first)
    return end - b.first >= b.fence_length and only_blanks_from(b, end)


# ---- HTML blocks (section 4.6) --------------------------------------------------

cdef int html_kind(const Blocks* b) noexcept nogil:
    """Which of the seven kinds of HTML block the < at `first` starts; 0: none."""
    cdef const char* text = b.text
    cdef size_t p = b.first + 1, name
    cdef Prose line
    cdef char c
    line.text = text
    line.end = b.end
    line.lines = NULL
    line.line_count = line.line = 0
    line.dead = NULL
    c = peek(&line, p)
    if c == c'?':
        return 3
    if c == c'!':
        if peek(&line, p + 1) == c'-' and peek(&line, p + 2) == c'-':
            return 2
        if is_letter(peek(&line, p + 1)):
            return 4
        return 5 if stands_at(&line, p, b"![CDATA[", 8) else 0
    name = p + 1 if c == c'/' else p
    p = tag_name_end(&line, name)
    if p == 0:
        return 0
    c = peek(&line, p)
    if p == b.end or is_blank(c) or c == c'>':
        if name == b.first + 1 and tailhook_is_html_raw(text + name, p - name):
            return 1
        if tailhook_is_html_block(text + name, p - name):
            return 6
    elif c == c'/' and peek(&line, p + 1) == c'>' and tailhook_is_html_block(text + name, p - name):
        return 6
    p = tag_end(&line, b.first)
    return 7 if p and only_blanks_from(b, p) else 0


cdef bint ends_raw(const Blocks* b) noexcept nogil:
    cdef size_t p = b.first, name
    while True:
        p = find(b.text, p, b.end, b"</", 2)
        if p == b.end:
            return False
        p += 2
        name = p
        while p < b.end and is_letter(b.text[p]):
            p += 1
        if p < b.end and b.text[p] == c'>' and tailhook_is_html_raw(b.text + name, p - name):
            return True


cdef bint ends_html(const Blocks* b) noexcept nogil:
    """Does the HTML block end with this line? (Kinds 6 and 7 end before a blank one.)"""
    if b.html == 1:
        return ends_raw(b)
    if b.html == 2:
        return find(b.text, b.first, b.end, b"-->", 3) < b.end
    if b.html == 3:
        return find(b.text, b.first, b.end, b"?>", 2) < b.end
    if b.html == 4:
        return find(b.text, b.first, b.end, b">", 1) < b.end
    if b.html == 5:
        return find(b.text, b.first, b.end, b"]]>", 3) < b.end
    return False


# ---- containers (section 5) -----------------------------------------------------

cdef inline void pass_quote_marker(Blocks* b) noexcept nogil:
    """Past > and the one blank, or the column of a tab, that may follow."""
    b.margin = b.column + 1
    go_to(b, b.first + 1, b.margin)
    if b.column > b.margin:
        b.margin += 1


cdef int open_quote(Blocks* b) noexcept nogil:
    cdef CodeMap* map = b.map
    if push_offset(&map.quotes, &map.quote_count, &map.quote_capacity, map.depth) < 0:
        return -1
    pass_quote_marker(b)
    return push_offset(&map.containers, &map.depth, &map.depth_capacity, 0)


cdef size_t marker_end(const Blocks* b, bint interrupts) noexcept nogil:
    """Past the list marker at `first`, 0: none. An item that interrupts a paragraph has content and starts from 1."""
    cdef size_t p = b.first
    if is_digit(b.text[p]):
        while p < b.end and is_digit(b.text[p]):
            p += 1
        if p - b.first > 9 or p == b.end or (b.text[p] != c'.' and b.text[p] != c')'):
            return 0
        if interrupts and not is_one(b.text, b.first, p):
            return 0
    elif b.text[p] != c'-' and b.text[p] != c'+' and b.text[p] != c'*':
        return 0
    p += 1
    if p < b.end and not is_blank(b.text[p]):
        return 0
    return 0 if interrupts and only_blanks_from(b, p) else p


cdef int open_item(Blocks* b, size_t end) noexcept nogil:
    """Open the list item whose marker ends at `end`."""
    cdef CodeMap* map = b.map
    cdef size_t margin = b.margin, after = b.column + (end - b.first)
    go_to(b, end, after)
    b.margin = b.column
    if is_blank_line(b) or b.column > after + 4:
        b.margin = after + 1
    b.bare = is_blank_line(b)
    return push_offset(&map.containers, &map.depth, &map.depth_capacity, b.margin - margin)


cdef size_t match_containers(Blocks* b) noexcept nogil:
    """How many of the open containers the line continues; margin is moved past their prefixes."""
    cdef CodeMap* map = b.map
    cdef size_t depth = 0, quotes = 0, columns
    cdef bint bare = b.bare
    b.bare = False
    b.margin = 0
    go_to(b, b.line, 0)
    while depth < map.depth:
        if is_blank_line(b):
            if quotes < map.quote_count:
                return map.quotes[quotes]
            return map.depth - 1 if bare else map.depth
        columns = map.containers[depth]
        if columns:
            if indent(b) < columns:
                break
            b.margin += columns
        else:
            if indent(b) > 3 or b.text[b.first] != c'>':
                break
            pass_quote_marker(b)
            quotes += 1
        depth += 1
    return depth


# ---- a line ---------------------------------------------------------------------

cdef int continue_leaf(Blocks* b) noexcept nogil:
    """The line, whose containers are all open, goes to the open code or HTML block if that takes it.

    1: it did, 0: it did not and is closed, -1: out of memory.
    """
    cdef bint ends = False
    if b.leaf == FENCED:
        ends = ends_fence(b)
    elif b.leaf == INDENTED:
        if is_blank_line(b):
            return 1                # counts only if more of the block follows
        if indent(b) < 4:
            return close_leaf(b)
    else:
        if b.html >= 6 and is_blank_line(b):
            return close_leaf(b)
        ends = ends_html(b)
    b.leaf_end = b.next
    if ends and close_leaf(b) < 0:
        return -1
    return 1


cdef int end_with_underline(Blocks* b) noexcept nogil:
    """The line underlines the paragraph: close that as a heading.

    1: done, 0: it held definitions only, and is open and empty now, -1: out of memory.
    """
    if b.text[b.leaf_start] == c'[':
        if take_definitions(b) < 0:
            return -1
        if b.leaf_start == b.leaf_end:
            b.leaf_start = b.leaf_end = b.first
            return 0
    return -1 if close_leaf(b) < 0 else 1


cdef int open_leaf_or_text(Blocks* b, size_t depth) noexcept nogil:
    """Start the leaf block that is not text, if the line does so. 1: it did, 0: it did not, -1: out of memory."""
    cdef char c = b.text[b.first]
    cdef int kind, ended
    if indent(b) > 3:
        if b.leaf == PARAGRAPH:     # indented code cannot interrupt a paragraph, lazy or not (4.4)
            return 0
        if close_to(b, depth) < 0:
            return -1
        open_leaf(b, INDENTED)
        return 1
    if c == c'#' and starts_heading(b):
        if close_to(b, depth) < 0:
            return -1
        return -1 if holds_special(b, b.first, b.end) and push_block(b, b.first, b.end, PROSE) < 0 else 1
    if (c == c'`' or c == c'~') and starts_fence(b):
        if close_to(b, depth) < 0:
            return -1
        b.fence = c
        b.fence_length = run_end(b, b.first) - b.first
        open_leaf(b, FENCED)
        return 1
    if c == c'<':
        kind = html_kind(b)
        if kind and not (kind == 7 and b.leaf == PARAGRAPH):
            if close_to(b, depth) < 0:
                return -1
            b.html = kind
            open_leaf(b, HTML)
            return -1 if ends_html(b) and close_leaf(b) < 0 else 1
    if (c == c'=' or c == c'-') and b.leaf == PARAGRAPH and depth == b.map.depth and is_underline(b):
        ended = end_with_underline(b)
        if ended:
            return ended
    if (c == c'*' or c == c'-' or c == c'_') and starts_rule(b):
        return -1 if close_to(b, depth) < 0 else 1
    return 0


cdef int open_container(Blocks* b, size_t depth) noexcept nogil:
    """Open the block quote or list item that the line starts. 1: done, 0: it starts none, -1: out of memory."""
    cdef size_t marker
    if indent(b) > 3:
        return 0
    if b.text[b.first] == c'>':
        return -1 if close_to(b, depth) < 0 or open_quote(b) < 0 else 1
    marker = marker_end(b, b.leaf == PARAGRAPH and depth == b.map.depth)
    if marker == 0:
        return 0
    return -1 if close_to(b, depth) < 0 or open_item(b, marker) < 0 else 1


cdef int read_text(Blocks* b, size_t depth) noexcept nogil:
    """The line is text, lazy if the innermost paragraph's containers are not all matched."""
    if b.leaf != PARAGRAPH and close_to(b, depth) < 0:
        return -1
    return add_text(b, b.first)


cdef int read_line(Blocks* b) noexcept nogil:
    """0, or -1: out of memory."""
    cdef size_t depth = match_containers(b)
    cdef int done
    b.no_rule_before = 0
    if depth < b.map.depth:
        if (b.leaf != PARAGRAPH or is_blank_line(b)) and close_to(b, depth) < 0:
            return -1
    elif b.leaf > PARAGRAPH:
        done = continue_leaf(b)
        if done:
            return 0 if done > 0 else -1
    while not is_blank_line(b):
        if indent(b) < 4 and not tailhook_may_start_block(b.text[b.first]):
            return read_text(b, depth)
        done = open_leaf_or_text(b, depth)
        if done:
            return 0 if done > 0 else -1
        done = open_container(b, depth)
        if done <= 0:
            return -1 if done < 0 else read_text(b, depth)
        depth = b.map.depth
    return close_leaf(b)


cdef int read_blocks(CodeMap* map, const char* text, size_t length) noexcept nogil:
    """Fill map.blocks, map.lines and map.labels. 0, or -1: out of memory."""
    cdef Blocks b
    memset(&b, 0, sizeof(b))
    b.map = map
    b.text = text
    b.special = tailhook_next_mark(map.marks, SPECIALS, 0)
    while b.line < length:
        b.end = tailhook_next_mark(map.marks, LINE_ENDS, b.line)
        b.next = b.end
        if b.end < length:
            b.next += 2 if text[b.end] == c'\r' and b.end + 1 < length and text[b.end + 1] == c'\n' else 1
        if b.leaf <= PARAGRAPH and not tailhook_may_start_block(text[b.line]):
            # Nearly every line of prose: text, lazy or not.
            if b.leaf == NO_LEAF and close_to(&b, 0) < 0:
                return -1
            if add_text(&b, b.line) < 0:
                return -1
        elif b.end == b.line and b.leaf <= PARAGRAPH and map.quote_count == 0 and not b.bare:
            # An empty line, which all list items take.
            if close_leaf(&b) < 0:
                return -1
        elif read_line(&b) < 0:
            return -1
        b.line = b.next
    return close_leaf(&b)
