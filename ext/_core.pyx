# cython: freethreading_compatible=True, subinterpreters_compatible=own_gil
"""The compiled core of tailhook: its table of contents and its Python face."""

include "markdown.pxi"
include "markdown_scan.pxi"
include "markdown_blocks.pxi"
include "markdown_inlines.pxi"
include "markdown_face.pxi"
