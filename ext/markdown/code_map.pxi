# The Markdown code map: the parts of a text that are code, by CommonMark 0.31.2.
#
# Gives: MdCodeMap, md_build_map, md_free_map; MdOpener, MdLongRun, MdFolded, MdLabel, md_push_span, md_push_offset;
# the kinds of code.
# For Python: code_spans.
# Needs: md_read_blocks (markdown/blocks.pxi), md_read_inlines (markdown/inlines.pxi), markdown.h, array_grow
# (array.pxi), Utf8View (text/view.pxi), tuple_new (named_tuple.pxi).
#
# There are three passes. The bytes that rules begin with are marked, 64 at a time (markdown.h). The blocks are read
# line by line (blocks.pxi). This finds the code blocks, and the prose with a marked byte. The inlines of that prose are
# read when all link reference definitions are known (inlines.pxi).
#
# Every pass is linear. A line costs its own bytes and the blocks that it closes, at any depth. Each byte of prose is
# looked ahead at only a fixed number of times. Nothing recurses.
#
# docs/recipes.md lists the places of a new rule. The oracle is tests/support/oracles/markdown.py, deliberate
# differences are in docs/decisions/markdown-differences.md.

cdef enum:
    MD_FENCE
    MD_INDENTED
    MD_SPAN
    MD_COMMENT
    MD_RAW
    MD_PROSE                   # only between the passes: the content of a paragraph or heading


cdef struct MdOpener:
    size_t text             # the byte after the [ or ![
    bint image
    bint nested             # another bracket opened inside: this is not a link label


cdef struct MdLongRun:
    size_t length           # of a run of backticks, MD_RUNS or more
    size_t last             # where the last run of that length starts


# One link label as it is compared, or several, one after another.
cdef struct MdFolded:
    uint8_t* data
    size_t size
    size_t capacity


cdef struct MdLabel:
    const uint8_t* text
    size_t size


cdef enum:
    MD_RUNS = 64


cdef struct MdCodeMap:
    MdSpan* spans         # the answer, in order, not overlapping
    size_t count
    size_t capacity
    # The passes' working memory. It is kept, so that the next text needs no new memory.
    uint64_t* marks         # set by md_mark
    size_t marks_capacity
    uint64_t* dead          # a bit for each byte, see md_value_end; NULL if the text does not need it
    MdSpan* blocks        # code blocks and prose, in order
    size_t block_count
    size_t block_capacity
    size_t* lines           # the start of each line's content, except the first line of each prose
    size_t line_count
    size_t line_capacity
    MdSpan* labels        # of the link reference definitions; kind is not used
    size_t label_count
    size_t label_capacity
    MdFolded folded         # the same labels as they are compared, one after another
    MdLabel* defined        # each of these, sorted
    size_t defined_count    # 0 until one is looked up
    size_t defined_capacity
    MdFolded wanted         # the label that is looked up
    size_t* containers      # open ones: 0 for a block quote, else the columns by which a list item is indented
    size_t depth
    size_t depth_capacity
    size_t* quotes          # which of the containers are block quotes
    size_t quote_count
    size_t quote_capacity
    MdOpener* openers         # brackets whose end has not come yet
    size_t opener_count
    size_t opener_capacity
    size_t runs[MD_RUNS]       # where the last run of that many backticks starts in this prose
    MdLongRun* long_runs      # longer ones, by length
    size_t long_run_count
    size_t long_run_capacity


cdef inline int md_push_span(
    MdSpan** spans, size_t* count, size_t* capacity, size_t start, size_t end, int kind
) noexcept nogil:
    if count[0] == capacity[0] and array_grow(<void**> spans, capacity, count[0] + 1, sizeof(MdSpan)) < 0:
        return -1
    spans[0][count[0]].start = start
    spans[0][count[0]].end = end
    spans[0][count[0]].kind = kind
    count[0] += 1
    return 0


cdef inline int md_push_offset(size_t** offsets, size_t* count, size_t* capacity, size_t offset) noexcept nogil:
    if count[0] == capacity[0] and array_grow(<void**> offsets, capacity, count[0] + 1, sizeof(size_t)) < 0:
        return -1
    offsets[0][count[0]] = offset
    count[0] += 1
    return 0


cdef int md_build_map(MdCodeMap* map, const char* text, size_t length, size_t first, size_t last) noexcept nogil:
    """Fill map.spans. A zeroed map is an empty one.

    first, last: only paragraphs that reach into text[first:last] are read for inlines.
    """
    cdef void* marks
    cdef int result
    map.count = map.block_count = map.line_count = map.label_count = map.defined_count = 0
    map.depth = map.quote_count = map.opener_count = 0
    if length == 0:
        return 0
    if map.marks_capacity < MD_MARKS(length):
        marks = PyMem_RawRealloc(map.marks, MD_MARKS(length) * sizeof(uint64_t))
        if marks == NULL:
            return -1
        map.marks = <uint64_t*> marks
        map.marks_capacity = MD_MARKS(length)
    md_mark(text, length, map.marks)
    if md_read_blocks(map, text, length) < 0:
        return -1
    result = md_read_inlines(map, text, length, first, last)
    PyMem_RawFree(map.dead)
    map.dead = NULL
    return result


cdef void md_free_map(MdCodeMap* map) noexcept nogil:
    """Free the map's memory and leave it empty."""
    PyMem_RawFree(map.spans)
    PyMem_RawFree(map.marks)
    PyMem_RawFree(map.blocks)
    PyMem_RawFree(map.lines)
    PyMem_RawFree(map.labels)
    PyMem_RawFree(map.folded.data)
    PyMem_RawFree(map.defined)
    PyMem_RawFree(map.wanted.data)
    PyMem_RawFree(map.containers)
    PyMem_RawFree(map.quotes)
    PyMem_RawFree(map.openers)
    PyMem_RawFree(map.long_runs)
    memset(map, 0, sizeof(MdCodeMap))


# ---- for Python ---------------------------------------------------------------

cdef inline str md_kind_name(int kind):
    """Return Python's name of a kind of code. Raises AssertionError for a kind without a name here."""
    if kind == MD_FENCE:
        return "fence"
    if kind == MD_INDENTED:
        return "indented"
    if kind == MD_SPAN:
        return "span"
    if kind == MD_COMMENT:
        return "comment"
    if kind == MD_RAW:
        return "raw"
    raise AssertionError(f"a kind of code has no name: {kind}")


cdef list md_spans_as(type cls, const MdCodeMap* map):
    cdef list spans = PyList_New(<Py_ssize_t> map.count)
    cdef object span
    cdef size_t i
    for i in range(map.count):
        span = tuple_new(cls, 3)
        tuple_set(span, 0, md_kind_name(map.spans[i].kind))
        tuple_set(span, 1, map.spans[i].start)
        tuple_set(span, 2, map.spans[i].end)
        Py_INCREF(span)
        PyList_SET_ITEM(spans, <Py_ssize_t> i, span)
    return spans


def code_spans(markdown, type cls not None):
    cdef MdCodeMap map
    cdef Utf8View text
    cdef int result
    tuple_require(cls)
    _owner = utf8_open(markdown, &text)
    memset(&map, 0, sizeof(map))
    try:
        with nogil:
            result = md_build_map(&map, <const char*> text.data, text.length, 0, text.length)
            if result == 0 and not text.in_bytes:
                md_spans_to_code_points(<const char*> text.data, map.spans, map.count)
        if result < 0:
            raise MemoryError
        return md_spans_as(cls, &map)
    finally:
        md_free_map(&map)
