# Sets or removes single values in a JSON text and leaves every other byte as it is.
#
# Gives: nothing to other parts. For Python: edit_json.
# Needs: the grammar (json/grammar.pxi), json_write (json/write.pxi), bytes_between (text/view.pxi),
# utf8_after_bom (text/utf8.pxi).
#
# States of other programs, and tailhook's own, keep their white space, their order and their spelling of numbers and
# escapes. An added member is laid out like its siblings.
#
# Edits that set values are collected in a tree as long as none depends on another one, and then made together. So each
# container is read once, even for many edits.

cdef enum:
    JSON_FEW_STEPS = 8  # are compared one by one; more are looked up

cdef struct JsonSlot:
    Cursor before  # past the value before this one, or past the opening bracket
    Cursor name    # the member's name; in an array the value itself
    Cursor colon   # past the name
    Cursor value   # NULL: there is no such member
    Cursor after   # past the value


cdef inline bint json_next_member(JsonSlot* slot, Cursor end, bint in_object) noexcept:
    """Move the slot to the member after it and return True, or False if it is the last one.

    Before the first call, `slot.after` is past the opening bracket.
    """
    cdef JsonFault fault
    cdef Cursor stop
    cdef Cursor p = json_skip_space(slot.after, end)
    if p[0] == c",":
        p = json_skip_space(p + 1, end)
    if p[0] == c"}" or p[0] == c"]":
        return False
    slot.before = slot.after
    slot.name = slot.colon = slot.value = p
    if in_object:
        slot.value = json_skip_to_value(p, end, &stop, &fault)
        slot.colon = stop + 1
    slot.after = json_skip(slot.value, end, &fault)
    return True


cdef bint json_name_is(JsonSlot* slot, object wanted, bytes wanted_utf8):
    """Return whether the member's name is the wanted one, escaped or not."""
    cdef Py_ssize_t size = slot.colon - slot.name - 2
    if memchr(slot.name, c"\\", size + 2) != NULL:
        return json_decode(slot.name + 1, slot.colon - 1) == wanted
    return (
        size == PyBytes_GET_SIZE(wanted_utf8) and memcmp(slot.name + 1, PyBytes_AS_STRING(wanted_utf8), size) == 0
    )


cdef list json_step_keys(Cursor p, Cursor end, list steps):
    """Return the steps as names in UTF-8, or as indices from the beginning, in the container at p."""
    cdef JsonSlot seen
    cdef Py_ssize_t count = 0
    cdef bint in_object = p[0] == c"{"
    cdef list keys = []
    for step in steps:
        if isinstance(step, str) is not in_object or not in_object and p[0] != c"[":
            raise KeyError(step)
        if in_object:
            keys.append(step.encode("utf-8", "surrogatepass"))
            continue
        if step < 0 and count == 0:
            seen.after = p + 1
            while json_next_member(&seen, end, False):
                count += 1
        keys.append(step + count if step < 0 else step)
    return keys


cdef int json_find_members(Cursor p, Cursor end, list steps, JsonSlot* slots, JsonSlot* last) except -1:
    """Set the slot of each step: the last member of that name, or the element at that index, in the container at p.

    last: set to the last member; if there is none, `last.value` is NULL and `last.after` past the opening bracket.
    """
    cdef Py_ssize_t count = len(steps)
    cdef Py_ssize_t index = 0
    cdef Py_ssize_t i
    cdef bint in_object = p[0] == c"{"
    cdef list keys = json_step_keys(p, end, steps)
    cdef dict places = None
    memset(slots, 0, count * sizeof(JsonSlot))
    if count > JSON_FEW_STEPS:
        places = {key: i for i, key in enumerate(steps if in_object else keys)}
    last.value = NULL
    last.after = p + 1
    while json_next_member(last, end, in_object):
        if places is not None:
            i = places.get(json_decode(last.name + 1, last.colon - 1) if in_object else index, -1)
            if i >= 0:
                slots[i] = last[0]
        else:
            for i in range(count):
                if json_name_is(last, steps[i], <bytes>keys[i]) if in_object else <Py_ssize_t>keys[i] == index:
                    slots[i] = last[0]
        index += 1
    return 0


# ---- values that are set ------------------------------------------------------

cdef bint json_want(dict wanted, tuple path, bytes value):
    """Add an edit to the tree and return True, or return False if it depends on one that is in the tree.

    wanted: the tree. Its key None leads to the root; a node has a step's value, or a dict with the steps that follow.
    """
    cdef dict node = wanted
    cdef object place = None
    for step in path:
        below = node.setdefault(place, {})
        if not isinstance(below, dict):
            return False
        other = next(iter(below), None)
        if isinstance(other, int) and isinstance(step, int) and (step < 0 or other < 0):
            return False  # two indices may mean one element
        node = below
        place = step
    if place in node:
        return False
    node[place] = value
    return True


cdef object json_plan(Cursor start, Cursor end, Cursor p, dict wanted, bytes colon, list splices):
    """Append the replacements for the container at p: (start, end, new bytes), in bytes of the text.

    wanted: the container's node in the tree.
    colon: the colon and white space of the parent containers.
    """
    cdef list steps = list(wanted)
    cdef list added = []
    cdef Py_ssize_t count = len(steps)
    cdef Py_ssize_t i
    cdef JsonSlot last
    cdef JsonSlot* slots = <JsonSlot*>PyMem_RawMalloc(count * sizeof(JsonSlot))
    if slots == NULL:
        raise MemoryError
    try:
        json_find_members(p, end, steps, slots, &last)
        for i in range(count):
            value = wanted[steps[i]]
            if slots[i].value == NULL:
                if isinstance(value, dict) or not isinstance(steps[i], str):
                    raise KeyError(steps[i])
                added.append((steps[i], value))
            elif isinstance(value, dict):
                own = bytes_between(slots[i].colon, slots[i].value) if slots[i].colon != slots[i].value else colon
                json_plan(start, end, slots[i].value, value, own, splices)
            else:
                splices.append((slots[i].value - start, slots[i].after - start, value))
    finally:
        PyMem_RawFree(slots)
    if added:
        splices.append((last.after - start, last.after - start, json_added_members(added, end, &last, colon)))
    return None


cdef bytes json_added_members(list added, Cursor end, JsonSlot* last, bytes colon):
    """Return the text of members to add after the last one.

    colon: the colon and white space of the parent containers, for an empty object.
    """
    cdef bytes text = b""
    cdef bytes separator
    cdef bytes space = b""
    cdef Cursor comma
    if last.value != NULL:
        colon = bytes_between(last.colon, last.value)
        comma = json_skip_space(last.before, end)
        if comma[0] == c",":
            separator = bytes_between(comma, last.name)
        else:
            space = bytes_between(last.before, last.name)
    if last.value == NULL or comma[0] != c",":
        separator = b"," + (space or (b" " if colon.endswith(b" ") else b""))
    for name, value in added:
        if text or last.value != NULL:
            text += separator
        text += json_write(name, 0) + colon + value
    return text


cdef bytes json_set(bytes data, dict wanted):
    """Return the text with all edits of a tree made."""
    cdef Cursor start = <Cursor>PyBytes_AS_STRING(data)
    cdef Cursor end = start + PyBytes_GET_SIZE(data)
    cdef Cursor root = json_skip_space(utf8_after_bom(start, end), end)
    cdef JsonFault fault
    cdef Py_ssize_t done = 0
    cdef list splices = []
    cdef list pieces = []
    if not wanted:
        return data
    if isinstance(wanted[None], dict):
        json_plan(start, end, root, wanted[None], b":", splices)
    else:
        splices.append((root - start, json_skip(root, end, &fault) - start, wanted[None]))
    splices.sort()
    for begin, stop, value in splices:
        pieces += (bytes_between(start + done, start + <Py_ssize_t>begin), value)
        done = stop
    pieces.append(bytes_between(start + done, end))
    data = b"".join(pieces)
    json_require(data, may_have_bom=True)  # a value may nest too deeply in its new place
    return data


# ---- values that are removed --------------------------------------------------

cdef bytes json_remove(bytes data, tuple path):
    """Return the text without an element, or without all members of a name. Each takes one comma with it."""
    cdef Cursor start = <Cursor>PyBytes_AS_STRING(data)
    cdef Cursor end = start + PyBytes_GET_SIZE(data)
    cdef Cursor parent = json_skip_space(utf8_after_bom(start, end), end)
    cdef JsonSlot slot, member
    cdef Cursor space = NULL  # before the first member, if that is removed
    cdef Cursor space_end = NULL
    cdef bint has_kept = False
    cdef bint in_object
    cdef bytes name = b""
    cdef list pieces
    if not path:
        raise KeyError("the whole text cannot be removed")
    for step in path[:len(path) - 1]:
        json_find_members(parent, end, [step], &slot, &member)
        if slot.value == NULL:
            raise KeyError(step)
        parent = slot.value
    step = path[len(path) - 1]
    json_find_members(parent, end, [step], &slot, &member)
    in_object = isinstance(step, str)
    if slot.value == NULL:
        if in_object:
            return data
        raise KeyError(step)
    if in_object:
        name = step.encode("utf-8", "surrogatepass")
    pieces = [bytes_between(start, parent + 1)]
    member.after = parent + 1
    while json_next_member(&member, end, in_object):
        if json_name_is(&member, step, name) if in_object else member.name == slot.name:
            if not has_kept and space == NULL:
                space = member.before
                space_end = member.name
        elif has_kept or space == NULL:
            pieces.append(bytes_between(member.before, member.after))
            has_kept = True
        else:
            pieces += (bytes_between(space, space_end), bytes_between(member.name, member.after))
            has_kept = True
    pieces.append(bytes_between(member.after, end))
    return b"".join(pieces)


cdef bytes json_edit(bytes data, object edits):
    cdef dict wanted = {}
    json_require(data, may_have_bom=True)
    for path, value in edits:
        if value is not None:
            json_require(value)
            if json_want(wanted, path, value):
                continue
        data = json_set(data, wanted)
        wanted = {}
        if value is None:
            data = json_remove(data, path)
        else:
            json_want(wanted, path, value)
    return json_set(data, wanted)


# ---- for Python ---------------------------------------------------------------

def edit_json(bytes data not None, edits):
    return json_edit(data, edits)
