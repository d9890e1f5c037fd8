"""A pytest plugin: Hypothesis takes few examples, and the same ones in every run."""

from hypothesis import settings

settings.register_profile("mutants", max_examples=30, derandomize=True, deadline=None, database=None)
settings.load_profile("mutants")
