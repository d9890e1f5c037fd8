# cython: freethreading_compatible=True, subinterpreters_compatible=own_gil, auto_pickle=False
"""The compiled core of tailhook: one extension module, included from parts."""

include "imports.pxi"
include "named_tuple.pxi"

include "text/view.pxi"
include "json/grammar.pxi"
include "json/read.pxi"
include "json/frame.pxi"
include "json/write.pxi"
include "json/edit.pxi"
include "json/layout.pxi"
include "json/columns.pxi"

include "transcript/source.pxi"
include "transcript/window.pxi"
include "transcript/fields.pxi"
include "transcript/records.pxi"
include "transcript/bad_lines.pxi"
include "text/iso8601.pxi"
include "transcript/last_message.pxi"
include "transcript/lines.pxi"

include "markdown/code_map.pxi"
include "markdown/grammar.pxi"
include "markdown/blocks.pxi"
include "markdown/inlines.pxi"

include "patterns/automaton.pxi"
include "patterns/matches.pxi"
include "patterns/pattern_set.pxi"
include "patterns/literals.pxi"
include "patterns/memory_lines.pxi"
include "patterns/keys.pxi"

include "os/waiting.pxi"
include "os/folders.pxi"
include "os/modules.pxi"
