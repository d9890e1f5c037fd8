# cython: freethreading_compatible=True, subinterpreters_compatible=own_gil
"""The compiled core of tailhook: its table of contents and its Python face."""

