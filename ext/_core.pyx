# cython: freethreading_compatible=True, subinterpreters_compatible=own_gil
"""The compiled core of tailhook: its table of contents and its Python face."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.ref cimport Py_INCREF
from cpython.unicode cimport PyUnicode_AsUTF8AndSize
from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport free, qsort, realloc

include "text.pxi"
include "markdown_stub.pxi"
include "automaton.pxi"
include "patterns.pxi"


# ---- pattern sets ---------------------------------------------------------------------

cdef extern from "tables.h":
    const uint32_t* tailhook_signals
    const char* const* tailhook_signals_names

cdef extern from "Python.h":
    object PyType_GenericAlloc(type cls, Py_ssize_t items)
    void PyTuple_SET_ITEM(object items, Py_ssize_t position, object item)


cdef inline void set_item(object items, Py_ssize_t position, object item):
    Py_INCREF(item)  # the tuple's own
    PyTuple_SET_ITEM(items, position, item)


cdef class Automaton:
    cdef tailhook_table table
    cdef readonly bytes data
    cdef readonly tuple names

    def __init__(self, bytes data not None, tuple names not None):
        cdef const uint32_t* words = <const uint32_t*> PyBytes_AS_STRING(data)
        if len(data) % 4 or not table_is_sound(words, len(data) // 4, <uint32_t> len(names)):
            raise ValueError("not a table of tailhook.automaton.compile_table for these names")
        self.data = data
        self.names = names
        tailhook_table_view(&self.table, words)

    def hits(self, bytes text not None, bint prefiltered=True):
        cdef Hits hits = Hits(NULL, 0, 0)
        cdef const uint8_t* data = <const uint8_t*> PyBytes_AS_STRING(text)
        cdef size_t length = PyBytes_GET_SIZE(text)
        cdef size_t i
        cdef int failed
        try:
            with nogil:
                failed = automaton_find(&self.table, data, length, prefiltered, &hits)
            if failed:
                raise MemoryError
            return [(hits.items[i].name, hits.items[i].start, hits.items[i].end) for i in range(hits.count)]
        finally:
            hits_free(&hits)

    def findall(self, source, bint own_line, bint outside_code, type cls not None):
        cdef Text text
        cdef Hits hits = Hits(NULL, 0, 0)
        cdef Hit* hit
        cdef size_t i, start, end
        cdef size_t byte = 0
        cdef size_t character = 0
        cdef int failed
        cdef list found = []
        if not issubclass(cls, tuple):
            raise TypeError(f"a match is a tuple, not {cls.__name__}")
        _owner = text_open(source, &text)
        try:
            with nogil:
                failed = patterns_find(&self.table, text.data, text.length, own_line, outside_code, &hits)
            if failed:
                raise MemoryError
            for i in range(hits.count):
                hit = &hits.items[i]
                start, end = hit.start, hit.end
                if not text.in_bytes:
                    character += count_characters(text.data, byte, hit.start)
                    byte = hit.start
                    start, end = character, character + count_characters(text.data, hit.start, hit.end)
                match = PyType_GenericAlloc(cls, 5)
                set_item(match, 0, self.names[hit.name])
                set_item(match, 1, start)
                set_item(match, 2, end)
                set_item(match, 3, hit.line)
                set_item(match, 4, hit.in_code)
                found.append(match)
            return found
        finally:
            hits_free(&hits)


def signals(source):
    cdef Text text
    cdef tailhook_table table
    cdef Hits hits = Hits(NULL, 0, 0)
    cdef size_t i
    cdef int failed
    _owner = text_open(source, &text)
    tailhook_table_view(&table, tailhook_signals)
    try:
        with nogil:
            failed = patterns_find(&table, text.data, text.length, True, True, &hits)
        if failed:
            raise MemoryError
        return [tailhook_signals_names[hits.items[i].name].decode() for i in range(hits.count)]
    finally:
        hits_free(&hits)
