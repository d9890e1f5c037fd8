# Sets or removes single values in a JSON text and leaves every other byte as it is.
#
# Gives: nothing to other parts. For Python: edit_json.
# Needs: the grammar (json/grammar.pxi), json_write (json/write.pxi), bytes_between (text/view.pxi),
# utf8_after_bom (text/utf8.pxi).
#
# The state of other programs, and tailhook's own, keep their white space, their order and their spelling of numbers and
# escapes. An added member is laid out like its siblings.

cdef struct JsonSlot:
    Cursor before  # past the value before this one, or past the opening bracket
    Cursor name    # the member's name; in an array the value itself
    Cursor colon   # past the name
    Cursor value
    Cursor after   # past the value


cdef bint json_name_is(Cursor name, Cursor colon, object wanted, bytes wanted_utf8):
    """Return whether the name, quotation marks included, is the wanted one, escaped or not."""
    cdef Py_ssize_t size = colon - name - 2
    if memchr(name, c"\\", size + 2) != NULL:
        return json_decode(name + 1, colon - 1) == wanted
    return size == PyBytes_GET_SIZE(wanted_utf8) and memcmp(name + 1, PyBytes_AS_STRING(wanted_utf8), size) == 0


cdef Py_ssize_t json_count_values(Cursor p, Cursor end) noexcept:
    """Return how many values the container at p has."""
    cdef JsonFault fault
    cdef Py_ssize_t count = 0
    cdef bint in_object = p[0] == c"{"
    p = json_skip_space(p + 1, end)
    while p[0] != c"}" and p[0] != c"]":
        if p[0] == c",":
            p = json_skip_space(p + 1, end)
        p = json_skip(json_skip_name(p, end, &fault) if in_object else p, end, &fault)
        p = json_skip_space(p, end)
        count += 1
    return count


cdef bint json_find_member(Cursor p, Cursor end, object step, JsonSlot* slot) except -1:
    """Find a member by its name (the last of that name) or an element by its index in the container at p.

    Returns whether it is there. If not, `slot` describes the last one; in an empty container `slot.name` is NULL.
    """
    cdef JsonFault fault
    cdef JsonSlot seen
    cdef bint in_object = isinstance(step, str)
    cdef bint found = False
    cdef Py_ssize_t index = 0
    cdef Py_ssize_t wanted_index = 0
    cdef bytes wanted_utf8 = b""
    if p[0] != (c"{" if in_object else c"["):
        raise KeyError(step)
    if in_object:
        wanted_utf8 = step.encode("utf-8", "surrogatepass")
    else:
        wanted_index = step
        if wanted_index < 0:
            wanted_index += json_count_values(p, end)
    slot.before = seen.before = p + 1
    slot.name = NULL
    p = json_skip_space(p + 1, end)
    while p[0] != c"}" and p[0] != c"]":
        seen.name = seen.colon = seen.value = p
        if in_object:
            seen.colon = json_skip_string(p + 1, end, &fault)
            seen.value = json_skip_name(p, end, &fault)
        seen.after = json_skip(seen.value, end, &fault)
        if json_name_is(seen.name, seen.colon, step, wanted_utf8) if in_object else index == wanted_index:
            found = True
            slot[0] = seen
        elif not found:
            slot[0] = seen
        seen.before = seen.after
        index += 1
        p = json_skip_space(seen.after, end)
        if p[0] == c",":
            p = json_skip_space(p + 1, end)
    return found


cdef bytes json_remove_member(Cursor start, Cursor end, JsonSlot* slot):
    """Return the text without the slot's member and one comma beside it."""
    cdef Cursor following = json_skip_space(slot.after, end)
    cdef Cursor comma = json_skip_space(slot.before, end)
    if comma[0] == c",":
        return bytes_between(start, slot.before) + bytes_between(slot.after, end)
    if following[0] == c",":
        return bytes_between(start, slot.name) + bytes_between(json_skip_space(following + 1, end), end)
    return bytes_between(start, slot.before) + bytes_between(slot.after, end)


cdef bytes json_add_member(Cursor start, Cursor end, JsonSlot* last, bytes colon, object name, bytes value):
    """Return the text with one more member after the last one.

    colon: the colon and white space that the parent containers use, for an object that is empty.
    """
    cdef bytes separator = b""
    cdef Cursor comma
    cdef Cursor place = last.before
    if last.name != NULL:
        colon = bytes_between(last.colon, last.value)
        comma = json_skip_space(last.before, end)
        place = last.after
        if comma[0] == c",":
            separator = bytes_between(comma, last.name)
        else:
            separator = b"," + (bytes_between(last.before, last.name) or (b" " if colon.endswith(b" ") else b""))
    return bytes_between(start, place) + separator + json_write(name, 0) + colon + value + bytes_between(place, end)


cdef bytes json_edit_one(bytes data, tuple path, bytes value):
    cdef Cursor start = <Cursor>PyBytes_AS_STRING(data)
    cdef Cursor end = start + PyBytes_GET_SIZE(data)
    cdef Cursor parent = json_skip_space(utf8_after_bom(start, end), end)
    cdef JsonFault fault
    cdef JsonSlot slot
    cdef bytes colon = b":"
    if not path:
        if value is None:
            raise KeyError("the whole text cannot be removed")
        return bytes_between(start, parent) + value + bytes_between(json_skip(parent, end, &fault), end)
    for step in path[:len(path) - 1]:
        if not json_find_member(parent, end, step, &slot):
            raise KeyError(step)
        parent = slot.value
        if slot.colon != slot.value:
            colon = bytes_between(slot.colon, slot.value)
    step = path[len(path) - 1]
    if json_find_member(parent, end, step, &slot):
        if value is None:
            return json_remove_member(start, end, &slot)
        return bytes_between(start, slot.value) + value + bytes_between(slot.after, end)
    if not isinstance(step, str):
        raise KeyError(step)
    return data if value is None else json_add_member(start, end, &slot, colon, step, value)


cdef bytes json_edit(bytes data, object edits):
    cdef bytes before
    json_require(data, may_have_bom=True)
    for path, value in edits:
        if value is not None:
            json_require(value)
        before, data = data, json_edit_one(data, path, value)
        if value is None and isinstance(path[len(path) - 1], str):
            # If there are earlier members of the same name, remove them too.
            while data is not before:
                before, data = data, json_edit_one(data, path, None)
        elif value is not None:
            json_require(data, may_have_bom=True)  # the value may nest too deeply where it stands now
    return data


# ---- for Python ---------------------------------------------------------------

def edit_json(bytes data not None, edits):
    return json_edit(data, edits)
