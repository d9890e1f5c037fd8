"""The mutants that no test can kill, each with the reason.

A row is: module, function ("" for the lines of the module itself), original line, mutated lines, reason. Blank space in
lines is one space, as in the report of `run.py`, which fails if a test kills a mutant of this list.
"""

EQUIVALENT: list[tuple[str, str, str, tuple[str, ...], str]] = []
