"""Reads a filter of Daft: the columns that it needs, and comparisons that a scan can use."""

# mypy: disable-error-code="misc"
# pyright: reportMissingImports=false

from __future__ import annotations

from typing import Any, NamedTuple

from tailhook.errors import MissingExtraError
from tailhook.fleet.engines import Comparison

try:
    from daft.expressions import Expression
    from daft.expressions.visitor import ExpressionVisitor
except ImportError as error:
    raise MissingExtraError(f"filters are Daft's ({error}). Install it:  pip install 'tailhook[daft]'") from error

OPERATORS = {
    "equal": "in",
    "is_in": "in",
    "less_than": "<",
    "less_than_or_equal": "<=",
    "greater_than": ">",
    "greater_than_or_equal": ">=",
}


class FilterColumn(NamedTuple):
    """A column in a filter, in contrast to a value."""

    name: str


class FilterReader(ExpressionVisitor[Any]):
    """The columns of a filter, and comparisons that hold for all of its rows.

    Visits return a list of comparisons, a FilterColumn, a value, or None for anything else.
    """

    def __init__(self, expr: Expression | None) -> None:
        self.columns: set[str] = set()
        found = None if expr is None else self.visit(expr)
        self.comparisons: list[Comparison] = found if isinstance(found, list) else []

    def visit_function(self, name: str, args: list[Any]) -> Any:
        found = [self.visit(one) for arg in args for one in (arg if isinstance(arg, list) else [arg])]
        lists = [one for one in found if isinstance(one, list)]
        if name == "and":
            return [one for side in lists for one in side]
        if name == "or":
            return either(lists) if len(lists) == len(found) else None
        if name in OPERATORS and isinstance(found[0], FilterColumn):
            return [Comparison(found[0].name, OPERATORS[name], tuple(found[1:]))]
        return None

    def visit_col(self, name: str) -> Any:
        self.columns.add(name)
        return FilterColumn(name)

    def visit_lit(self, value: Any) -> Any:
        return value

    def visit_alias(self, expr: Expression, alias: str) -> Any:
        return self.visit(expr)

    def visit_cast(self, expr: Expression, dtype: Any) -> None:
        self.visit(expr)

    def visit_coalesce(self, args: list[Expression]) -> None:
        for one in args:
            self.visit(one)


def either(sides: list[list[Comparison]]) -> list[Comparison] | None:
    """Return a comparison that holds if one of the sides holds, or None. Daft writes a short `is_in` like this."""
    if any(len(side) != 1 or side[0].operator != "in" or side[0].column != sides[0][0].column for side in sides):
        return None
    return [sides[0][0]._replace(values=tuple(value for ((_, _, values),) in sides for value in values))]
