# The block structure (CommonMark 0.31.2, sections 3 to 5).
#
# Gives: md_read_blocks.
# Needs: MdCodeMap (markdown/code_map.pxi), the grammar (markdown/grammar.pxi), the marks and md_may_start_block
# (markdown.h).
#
# A line is matched against the open containers, from the outermost in. The rest may start new blocks or be text. The
# cost must not depend on how many containers are open: a container costs time only if it takes bytes of the line (a
# list item takes columns of white space, a block quote its >) or if it is closed. A blank line takes all list items up
# to the next block quote at once. A lazy line touches only the containers that it reaches.
#
# Columns count from the start of the line, with a tab stop at every fourth. A list item, or the optional space after
# >, may end inside a tab. So the margin (the start of the matched containers' content) is a column and not a byte.

cdef enum:
    MD_NO_LEAF
    MD_LEAF_PARAGRAPH
    MD_LEAF_FENCED
    MD_LEAF_INDENTED
    MD_LEAF_HTML

# The kinds of HTML blocks, with the numbers of the specification's start conditions (section 4.6).
cdef enum:
    MD_NO_HTML
    MD_HTML_RAW = 1         # <pre, <script, <style, <textarea
    MD_HTML_COMMENT = 2     # <!--
    MD_HTML_INSTRUCTION = 3  # <?
    MD_HTML_DECLARATION = 4  # <! and a letter
    MD_HTML_CDATA = 5       # <![CDATA[
    MD_HTML_BLOCK_TAG = 6   # a tag of the specification's list
    MD_HTML_OTHER_TAG = 7   # another whole tag, alone on its line


cdef struct MdBlocks:
    MdCodeMap* map
    const char* text
    # The current line
    size_t line             # its first byte
    size_t end              # its line end, or the end of the text
    size_t next             # the first byte of the next line
    size_t first            # its first byte that is not in a prefix, a space or a tab
    size_t column           # the column of that byte
    size_t margin           # the column at which the content of the matched containers starts
    size_t no_rule_before   # no thematic break starts before this byte of the line
    # What is open, apart from the containers
    bint bare               # the innermost container is a list item that began with a blank line, the line before
    int leaf
    size_t leaf_start       # of its first line; for a paragraph of its content
    size_t leaf_end         # of its last line; for a paragraph of its content
    size_t leaf_lines       # how many lines the map had when the paragraph began
    char fence
    size_t fence_length
    int html                # MD_HTML_*
    size_t special          # the first special byte at or after the last paragraph asked about


cdef inline size_t md_indent(const MdBlocks* b) noexcept nogil:
    return b.column - b.margin


cdef inline bint md_is_blank_line(const MdBlocks* b) noexcept nogil:
    return b.first == b.end


cdef inline void md_move_to(MdBlocks* b, size_t p, size_t column) noexcept nogil:
    """Set first and column to the first byte from p, at `column`, that is not a space or tab."""
    while p < b.end and md_is_space_or_tab(b.text[p]):
        column = column + 1 if b.text[p] == c' ' else column + 4 - column % 4
        p += 1
    b.first = p
    b.column = column


# ---- leaf blocks: closing -------------------------------------------------------

cdef inline int md_push_block(MdBlocks* b, size_t start, size_t end, int kind) noexcept nogil:
    return md_push_span(&b.map.blocks, &b.map.block_count, &b.map.block_capacity, start, end, kind)


cdef inline bint md_find_special(MdBlocks* b, size_t start, size_t end) noexcept nogil:
    """Search text[start:end) for a special byte. Return whether it has one.

    The next one is kept: positions ascend, so no byte is searched twice.
    """
    if b.special < start:
        b.special = md_next_mark(b.map.marks, MD_SPECIALS, start)
    return b.special < end


cdef int md_take_definitions(MdBlocks* b) noexcept nogil:
    """Move leaf_start past the definitions at the paragraph's start (section 4.7)."""
    cdef MdCodeMap* map = b.map
    cdef MdProse prose
    cdef size_t label = 0, end
    prose.text = b.text
    prose.end = b.leaf_end
    prose.lines = map.lines
    prose.line_count = map.line_count
    prose.line = b.leaf_lines
    prose.dead = NULL
    while b.leaf_start < b.leaf_end and b.text[b.leaf_start] == c'[':
        end = md_definition_end(&prose, b.leaf_start, &label)
        if end == 0:
            break
        if md_push_span(&map.labels, &map.label_count, &map.label_capacity, b.leaf_start + 1, label - 1, 0) < 0:
            return -1
        b.leaf_start = end
        b.leaf_lines = map.line_count       # the labels may need these lines
    return 0


cdef int md_close_paragraph(MdBlocks* b) noexcept nogil:
    if b.text[b.leaf_start] == c'[' and md_take_definitions(b) < 0:
        return -1
    if md_find_special(b, b.leaf_start, b.leaf_end):
        return md_push_block(b, b.leaf_start, b.leaf_end, MD_PROSE)
    b.map.line_count = b.leaf_lines
    return 0


cdef int md_close_leaf(MdBlocks* b) noexcept nogil:
    cdef int leaf = b.leaf
    b.leaf = MD_NO_LEAF
    if leaf == MD_LEAF_PARAGRAPH:
        return md_close_paragraph(b)
    if leaf == MD_LEAF_FENCED or leaf == MD_LEAF_INDENTED:
        return md_push_block(b, b.leaf_start, b.leaf_end, MD_FENCE if leaf == MD_LEAF_FENCED else MD_INDENTED)
    if leaf == MD_LEAF_HTML and b.html == MD_HTML_RAW:
        return md_push_block(b, b.leaf_start, b.leaf_end, MD_RAW)
    if leaf == MD_LEAF_HTML and b.html == MD_HTML_COMMENT:
        return md_push_block(b, b.leaf_start, b.leaf_end, MD_COMMENT)
    return 0


cdef int md_close_to(MdBlocks* b, size_t depth) noexcept nogil:
    """Close the leaf and every container deeper than `depth`."""
    cdef MdCodeMap* map = b.map
    map.depth = depth
    while map.quote_count and map.quotes[map.quote_count - 1] >= depth:
        map.quote_count -= 1
    b.bare = False
    return md_close_leaf(b)


# ---- leaf blocks: opening -------------------------------------------------------

cdef inline void md_open_leaf(MdBlocks* b, int leaf) noexcept nogil:
    b.leaf = leaf
    b.leaf_start = b.line
    b.leaf_end = b.next


cdef inline int md_add_text(MdBlocks* b, size_t first) noexcept nogil:
    """Add the line from `first` on to the open paragraph, or to a new one."""
    cdef MdCodeMap* map = b.map
    if b.leaf == MD_LEAF_PARAGRAPH:
        if md_push_offset(&map.lines, &map.line_count, &map.line_capacity, first) < 0:
            return -1
    else:
        b.leaf = MD_LEAF_PARAGRAPH
        b.leaf_start = first
        b.leaf_lines = map.line_count
    b.leaf_end = b.end
    return 0


cdef size_t md_run_end(const MdBlocks* b, size_t p) noexcept nogil:
    """Return the position after the run of the byte at p."""
    cdef char c = b.text[p]
    while p < b.end and b.text[p] == c:
        p += 1
    return p


cdef bint md_is_rest_blank(const MdBlocks* b, size_t p) noexcept nogil:
    while p < b.end and md_is_space_or_tab(b.text[p]):
        p += 1
    return p == b.end


cdef bint md_try_rule(MdBlocks* b) noexcept nogil:
    """Try to read a thematic break here (section 4.1). Return whether there is one.

    If a try fails at a byte, all tries from earlier bytes fail, too. That is noted, because items may nest here.
    """
    cdef size_t p = b.first, count = 0
    cdef char c = b.text[p]
    if p < b.no_rule_before:
        return False
    while p < b.end and (b.text[p] == c or md_is_space_or_tab(b.text[p])):
        if b.text[p] == c:
            count += 1
        p += 1
    if p == b.end:
        return count >= 3
    b.no_rule_before = p
    return False


cdef bint md_starts_heading(const MdBlocks* b) noexcept nogil:
    """Return whether an ATX heading starts here (section 4.2)."""
    cdef size_t end = md_run_end(b, b.first)
    return end - b.first <= 6 and (end == b.end or md_is_space_or_tab(b.text[end]))


cdef bint md_is_underline(const MdBlocks* b) noexcept nogil:
    """Return whether the line is a setext heading underline (section 4.3)."""
    return md_is_rest_blank(b, md_run_end(b, b.first))


cdef bint md_starts_fence(const MdBlocks* b) noexcept nogil:
    """Return whether a code fence starts here (section 4.5)."""
    cdef size_t end = md_run_end(b, b.first)
    if end - b.first < 3:
        return False
    return b.text[b.first] == c'~' or memchr(b.text + end, c'`', b.end - end) == NULL


cdef bint md_ends_fence(const MdBlocks* b) noexcept nogil:
    cdef size_t end
    if md_is_blank_line(b) or b.text[b.first] != b.fence or md_indent(b) > 3:
        return False
    end = md_run_end(b, b.first)
    return end - b.first >= b.fence_length and md_is_rest_blank(b, end)


# ---- HTML blocks (section 4.6) --------------------------------------------------

cdef int md_html_kind(const MdBlocks* b) noexcept nogil:
    """Return the kind of HTML block that the < at `first` starts, or MD_NO_HTML."""
    cdef const char* text = b.text
    cdef size_t p = b.first + 1, name
    cdef MdProse line
    cdef char c
    line.text = text
    line.end = b.end
    line.lines = NULL
    line.line_count = line.line = 0
    line.dead = NULL
    c = md_peek(&line, p)
    if c == c'?':
        return MD_HTML_INSTRUCTION
    if c == c'!':
        if md_peek(&line, p + 1) == c'-' and md_peek(&line, p + 2) == c'-':
            return MD_HTML_COMMENT
        if md_is_letter(md_peek(&line, p + 1)):
            return MD_HTML_DECLARATION
        return MD_HTML_CDATA if md_stands_at(&line, p, LIT(b"![CDATA[")) else MD_NO_HTML
    name = p + 1 if c == c'/' else p
    p = md_tag_name_end(&line, name)
    if p == 0:
        return MD_NO_HTML
    c = md_peek(&line, p)
    if p == b.end or md_is_space_or_tab(c) or c == c'>':
        if name == b.first + 1 and md_is_html_raw(text + name, p - name):
            return MD_HTML_RAW
        if md_is_html_block(text + name, p - name):
            return MD_HTML_BLOCK_TAG
    elif c == c'/' and md_peek(&line, p + 1) == c'>' and md_is_html_block(text + name, p - name):
        return MD_HTML_BLOCK_TAG
    p = md_tag_end(&line, b.first)
    return MD_HTML_OTHER_TAG if p and md_is_rest_blank(b, p) else MD_NO_HTML


cdef bint md_ends_raw(const MdBlocks* b) noexcept nogil:
    cdef size_t p = b.first, name
    while True:
        p = md_find(b.text, p, b.end, LIT(b"</"))
        if p == b.end:
            return False
        p += 2
        name = p
        while p < b.end and md_is_letter(b.text[p]):
            p += 1
        if p < b.end and b.text[p] == c'>' and md_is_html_raw(b.text + name, p - name):
            return True


cdef bint md_ends_html(const MdBlocks* b) noexcept nogil:
    """Return whether the HTML block ends with this line. A tag's block ends before a blank line."""
    if b.html == MD_HTML_RAW:
        return md_ends_raw(b)
    if b.html == MD_HTML_COMMENT:
        return md_find(b.text, b.first, b.end, LIT(b"-->")) < b.end
    if b.html == MD_HTML_INSTRUCTION:
        return md_find(b.text, b.first, b.end, LIT(b"?>")) < b.end
    if b.html == MD_HTML_DECLARATION:
        return md_find(b.text, b.first, b.end, LIT(b">")) < b.end
    if b.html == MD_HTML_CDATA:
        return md_find(b.text, b.first, b.end, LIT(b"]]>")) < b.end
    return False


# ---- containers (section 5) -----------------------------------------------------

cdef inline void md_pass_quote_marker(MdBlocks* b) noexcept nogil:
    """Skip > and the one space, or the column of a tab, that may follow."""
    b.margin = b.column + 1
    md_move_to(b, b.first + 1, b.margin)
    if b.column > b.margin:
        b.margin += 1


cdef int md_open_quote(MdBlocks* b) noexcept nogil:
    cdef MdCodeMap* map = b.map
    if md_push_offset(&map.quotes, &map.quote_count, &map.quote_capacity, map.depth) < 0:
        return -1
    md_pass_quote_marker(b)
    return md_push_offset(&map.containers, &map.depth, &map.depth_capacity, 0)


cdef size_t md_marker_end(const MdBlocks* b, bint interrupts) noexcept nogil:
    """Return the position after the list marker at `first`, or 0 if there is none.

    interrupts: the item would interrupt a paragraph. Then it must have content and be numbered 1, if at all.
    """
    cdef size_t end = md_list_marker_end(b.text, b.first, b.end)
    if end == 0 or not interrupts:
        return end
    if md_is_digit(b.text[b.first]) and not md_is_one(b.text, b.first, end - 1):
        return 0
    return 0 if md_is_rest_blank(b, end) else end


cdef int md_open_item(MdBlocks* b, size_t end) noexcept nogil:
    """Open the list item whose marker ends at `end`."""
    cdef MdCodeMap* map = b.map
    cdef size_t margin = b.margin, after = b.column + (end - b.first)
    md_move_to(b, end, after)
    b.margin = b.column
    if md_is_blank_line(b) or b.column > after + 4:
        b.margin = after + 1
    b.bare = md_is_blank_line(b)
    return md_push_offset(&map.containers, &map.depth, &map.depth_capacity, b.margin - margin)


cdef size_t md_match_containers(MdBlocks* b) noexcept nogil:
    """Return how many of the open containers the line continues. Moves margin past their prefixes."""
    cdef MdCodeMap* map = b.map
    cdef size_t depth = 0, quotes = 0, columns
    cdef bint bare = b.bare
    b.bare = False
    b.margin = 0
    md_move_to(b, b.line, 0)
    while depth < map.depth:
        if md_is_blank_line(b):
            if quotes < map.quote_count:
                return map.quotes[quotes]
            return map.depth - 1 if bare else map.depth
        columns = map.containers[depth]
        if columns:
            if md_indent(b) < columns:
                break
            b.margin += columns
        else:
            if md_indent(b) > 3 or b.text[b.first] != c'>':
                break
            md_pass_quote_marker(b)
            quotes += 1
        depth += 1
    return depth


# ---- a line ---------------------------------------------------------------------

cdef int md_continue_leaf(MdBlocks* b) noexcept nogil:
    """Add the line to the open code or HTML block if it belongs there. All containers of the line are open.

    Returns 1: it does, 0: it does not and the block is closed.
    """
    cdef bint ends = False
    if b.leaf == MD_LEAF_FENCED:
        ends = md_ends_fence(b)
    elif b.leaf == MD_LEAF_INDENTED:
        if md_is_blank_line(b):
            return 1                # belongs to the block only if more of it follows
        if md_indent(b) < 4:
            return md_close_leaf(b)
    else:
        if b.html >= MD_HTML_BLOCK_TAG and md_is_blank_line(b):
            return md_close_leaf(b)
        ends = md_ends_html(b)
    b.leaf_end = b.next
    if ends and md_close_leaf(b) < 0:
        return -1
    return 1


cdef int md_end_with_underline(MdBlocks* b) noexcept nogil:
    """Close the paragraph as a heading, because the line underlines it.

    Returns 1: done, 0: it held only definitions, and is open and empty now.
    """
    if b.text[b.leaf_start] == c'[':
        if md_take_definitions(b) < 0:
            return -1
        if b.leaf_start == b.leaf_end:
            b.leaf_start = b.leaf_end = b.first
            return 0
    return -1 if md_close_leaf(b) < 0 else 1


cdef int md_start_leaf(MdBlocks* b, size_t depth) noexcept nogil:
    """Start a leaf block other than text, if the line begins one. Returns 1: it does, 0: it does not.

    A rule with a new first byte needs the byte in TAILHOOK_BLOCK_START_BYTES (markdown.h).
    """
    cdef char c = b.text[b.first]
    cdef int kind, ended
    if md_indent(b) > 3:
        if b.leaf == MD_LEAF_PARAGRAPH:     # indented code cannot interrupt a paragraph, lazy or not (4.4)
            return 0
        if md_close_to(b, depth) < 0:
            return -1
        md_open_leaf(b, MD_LEAF_INDENTED)
        return 1
    if c == c'#' and md_starts_heading(b):
        if md_close_to(b, depth) < 0:
            return -1
        return -1 if md_find_special(b, b.first, b.end) and md_push_block(b, b.first, b.end, MD_PROSE) < 0 else 1
    if (c == c'`' or c == c'~') and md_starts_fence(b):
        if md_close_to(b, depth) < 0:
            return -1
        b.fence = c
        b.fence_length = md_run_end(b, b.first) - b.first
        md_open_leaf(b, MD_LEAF_FENCED)
        return 1
    if c == c'<':
        kind = md_html_kind(b)
        if kind != MD_NO_HTML and not (kind == MD_HTML_OTHER_TAG and b.leaf == MD_LEAF_PARAGRAPH):
            if md_close_to(b, depth) < 0:
                return -1
            b.html = kind
            md_open_leaf(b, MD_LEAF_HTML)
            return -1 if md_ends_html(b) and md_close_leaf(b) < 0 else 1
    if (c == c'=' or c == c'-') and b.leaf == MD_LEAF_PARAGRAPH and depth == b.map.depth and md_is_underline(b):
        ended = md_end_with_underline(b)
        if ended:
            return ended
    if (c == c'*' or c == c'-' or c == c'_') and md_try_rule(b):
        return -1 if md_close_to(b, depth) < 0 else 1
    return 0


cdef int md_open_container(MdBlocks* b, size_t depth) noexcept nogil:
    """Open the block quote or list item that the line starts. Returns 1: done, 0: it starts none.

    For a new first byte see md_start_leaf.
    """
    cdef size_t marker
    if md_indent(b) > 3:
        return 0
    if b.text[b.first] == c'>':
        return -1 if md_close_to(b, depth) < 0 or md_open_quote(b) < 0 else 1
    marker = md_marker_end(b, b.leaf == MD_LEAF_PARAGRAPH and depth == b.map.depth)
    if marker == 0:
        return 0
    return -1 if md_close_to(b, depth) < 0 or md_open_item(b, marker) < 0 else 1


cdef int md_read_text(MdBlocks* b, size_t depth) noexcept nogil:
    """Add the line as text. It is lazy if not all containers of the innermost paragraph are matched."""
    if b.leaf != MD_LEAF_PARAGRAPH and md_close_to(b, depth) < 0:
        return -1
    return md_add_text(b, b.first)


cdef int md_read_line(MdBlocks* b) noexcept nogil:
    """Read one line."""
    cdef size_t depth = md_match_containers(b)
    cdef int done
    b.no_rule_before = 0
    if depth < b.map.depth:
        if (b.leaf != MD_LEAF_PARAGRAPH or md_is_blank_line(b)) and md_close_to(b, depth) < 0:
            return -1
    elif b.leaf > MD_LEAF_PARAGRAPH:
        done = md_continue_leaf(b)
        if done:
            return 0 if done > 0 else -1
    while not md_is_blank_line(b):
        if md_indent(b) < 4 and not md_may_start_block(b.text[b.first]):
            return md_read_text(b, depth)
        done = md_start_leaf(b, depth)
        if done:
            return 0 if done > 0 else -1
        done = md_open_container(b, depth)
        if done <= 0:
            return -1 if done < 0 else md_read_text(b, depth)
        depth = b.map.depth
    return md_close_leaf(b)


cdef int md_read_blocks(MdCodeMap* map, const char* text, size_t length) noexcept nogil:
    """Fill map.blocks, map.lines and map.labels."""
    cdef MdBlocks b
    memset(&b, 0, sizeof(b))
    b.map = map
    b.text = text
    b.special = md_next_mark(map.marks, MD_SPECIALS, 0)
    while b.line < length:
        b.end = md_next_mark(map.marks, MD_LINE_ENDS, b.line)
        b.next = b.end
        if b.end < length:
            b.next += 2 if text[b.end] == c'\r' and b.end + 1 < length and text[b.end + 1] == c'\n' else 1
        if b.leaf <= MD_LEAF_PARAGRAPH and not md_may_start_block(text[b.line]):
            # Nearly every line of prose is text, lazy or not.
            if b.leaf == MD_NO_LEAF and md_close_to(&b, 0) < 0:
                return -1
            if md_add_text(&b, b.line) < 0:
                return -1
        elif b.end == b.line and b.leaf <= MD_LEAF_PARAGRAPH and map.quote_count == 0 and not b.bare:
            # An empty line belongs to all list items.
            if md_close_leaf(&b) < 0:
                return -1
        elif md_read_line(&b) < 0:
            return -1
        b.line = b.next
    return md_close_leaf(&b)
