# Finds the members of the content blocks of tools: of tool_use and tool_result.
#
# Gives: RecToolBlock, rec_walk_tool_block, rec_next_tool_block.
# Needs: RecSlice (transcript/fields.pxi), json_skip and its kin, json_unescape (json/grammar.pxi).
#
# The walk of the record (transcript/fields.pxi) has checked the blocks, and has noted the places of tools. Here they
# are read again, on request.

cdef struct RecToolBlock:
    RecSlice type
    RecSlice id
    RecSlice name
    RecSlice input
    RecSlice use_id
    RecSlice is_error
    RecSlice content
    RecSlice timestamp     # of a result, in translations of other hosts' records


cdef RecSlice* rec_tool_member(RecToolBlock* block, Cursor name, Py_ssize_t size) noexcept nogil:
    """Return the place for the value of a member, NULL if it is not needed."""
    if bytes_equal(name, size, LIT(b"type")):
        return &block.type
    if bytes_equal(name, size, LIT(b"id")):
        return &block.id
    if bytes_equal(name, size, LIT(b"name")):
        return &block.name
    if bytes_equal(name, size, LIT(b"input")):
        return &block.input
    if bytes_equal(name, size, LIT(b"tool_use_id")):
        return &block.use_id
    if bytes_equal(name, size, LIT(b"is_error")):
        return &block.is_error
    if bytes_equal(name, size, LIT(b"content")):
        return &block.content
    if bytes_equal(name, size, LIT(b"timestamp")):
        return &block.timestamp
    return NULL


cdef RecSlice* rec_escaped_tool_member(RecToolBlock* block, Cursor name, Cursor end) noexcept nogil:
    """Return the place for the value of a member with escapes in its name, NULL if it is not needed."""
    cdef unsigned char plain[128]
    cdef bint lone = False
    if end - name > <Py_ssize_t>sizeof(plain) or memchr(name, c"\\", end - name) == NULL:
        return NULL
    return rec_tool_member(block, plain, json_unescape(name, end, plain, &lone))


cdef Cursor rec_walk_tool_block(Cursor p, Cursor end, RecToolBlock* block) noexcept nogil:
    """Find the members of the valid content block at p. Returns the position after it."""
    cdef JsonFault fault
    cdef RecSlice* member
    cdef Cursor name
    cdef Cursor start
    memset(block, 0, sizeof(RecToolBlock))
    p = json_skip_space(p + 1, end)
    while p[0] == c'"':
        name = p + 1
        p = json_skip_string(name, end, &fault)
        member = rec_tool_member(block, name, p - name - 1)
        if member == NULL:
            member = rec_escaped_tool_member(block, name, p - 1)
        start = json_skip_space(json_skip_space(p, end) + 1, end)
        p = json_skip(start, end, &fault)
        if member != NULL:
            member[0] = RecSlice(start, p)
        p = json_skip_space(p, end)
        if p[0] == c",":
            p = json_skip_space(p + 1, end)
    return p + 1


cdef bint rec_next_tool_block(RecSlice* elements, RecToolBlock* block) noexcept nogil:
    """Read the next object of a valid array and move the start of `elements` past it. Returns False if none is left.

    elements: from after the opening bracket, or from an element.
    """
    cdef JsonFault fault
    while True:
        elements.start = json_skip_space(elements.start, elements.end)
        if elements.start == elements.end or elements.start[0] == c"]":
            return False
        if elements.start[0] == c",":
            elements.start += 1
        elif elements.start[0] == c"{":
            elements.start = rec_walk_tool_block(elements.start, elements.end, block)
            return True
        else:
            elements.start = json_skip(elements.start, elements.end, &fault)
