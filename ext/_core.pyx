# cython: subinterpreters_compatible=own_gil, auto_pickle=False
"""The compiled core of tailhook: one extension module, included from parts."""

# All parts share one name space; imports.pxi holds every cimport. A struct must be included before the parts that use
# it in a declaration. A function may be called from any part. The docstrings for Python are in src/tailhook/_core.pyi.

include "imports.pxi"
include "array.pxi"                     # arrays that grow
include "named_tuple.pxi"               # instances of NamedTuple classes
include "os/modules.pxi"                # the hook's own modules; early, because a hook's process makes no cycles

include "text/utf8.pxi"                 # one character at a time
include "text/view.pxi"                 # borrowed UTF-8 views of str and bytes; hashes
include "text/iso8601.pxi"              # dates and times

include "json/grammar.pxi"              # the grammar, and the content of strings
include "json/read.pxi"                 # a text to Python objects
include "json/frame.pxi"                # the end of an object in a stream
include "json/write.pxi"                # Python objects to a text
include "json/edit.pxi"                 # single values set or removed
include "json/layout.pxi"               # a text indented
include "json/columns.pxi"              # a large array of objects in a file

include "transcript/source.pxi"         # a file that is read at offsets
include "transcript/window.pxi"         # its lines, newest or oldest first
include "transcript/fields.pxi"         # the members of a record
include "transcript/tool_blocks.pxi"    # the blocks of tools in a message
include "transcript/records.pxi"        # a record: its kind, role, text and tools
include "transcript/properties.pxi"     # its origin, its counts and times
include "transcript/record_class.pxi"   # a record for Python
include "transcript/bad_lines.pxi"      # the record in a line that is not one JSON text
include "transcript/ids.pxi"            # ids that were read before, and repeated records
include "transcript/last_message.pxi"   # the newest message of the assistant
include "transcript/lines.pxi"          # iterators over lines, records and messages
include "transcript/tool_uses.pxi"      # the uses of some tools, and what became of each

include "markdown/code_map.pxi"         # the ranges of a text that are code; how to add a rule
include "markdown/grammar.pxi"          # markers, links, tags and autolinks
include "markdown/labels.pxi"           # link labels, case folded
include "markdown/blocks.pxi"           # the block structure
include "markdown/inlines.pxi"          # code spans, comments, links

include "patterns/automaton.pxi"        # many patterns at once
include "patterns/matches.pxi"          # which matches count
include "patterns/pattern_set.pxi"      # a user's pattern set
include "patterns/literals.pxi"         # signals, promises, keywords
include "patterns/memory_lines.pxi"     # the lines that count for the memory machine
include "patterns/keys.pxi"             # keys and tokens with a known prefix

include "arrow/columns.pxi"             # columns that grow
include "arrow/export.pxi"              # finished columns, for Arrow's consumers
include "arrow/values.pxi"              # finished columns, as lists of Python values
include "arrow/batch.pxi"               # a batch of finished columns
include "arrow/stream.pxi"              # batches one after the other

include "scan/queue.pxi"                # finished batches between threads
include "scan_columns.pxi"              # the columns of a scan's tables: made by ext/tables.py
include "scan/fields.pxi"               # a row's values on their way into them
include "scan/records.pxi"              # the rows of one record
include "scan/tool_halves.pxi"          # those in the table of tools
include "scan/responses.pxi"            # those that count
include "scan/copies.pxi"               # those that are copies of others
include "scan/run.pxi"                  # from blocks of a file to rows
include "scan/found_files.pxi"          # the files that a scan finds
include "scan/small_files.pxi"          # whole files that are small
include "scan/filters.pxi"              # which records a question is about
include "scan/matches.pxi"              # the rows of the table matches
include "scan/program.pxi"              # the question
include "scan/range.pxi"                # the scan of a range, for Python

include "os/waiting.pxi"                # locks, waiting for input, wake-ups
include "os/folders.pxi"                # which users can change a folder
include "os/pool.pxi"                   # what a pool of hook workers asks the system
