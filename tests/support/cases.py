"""Runs a test on many small cases as one test."""

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

Test = Callable[..., None]


def in_one_test(names: str | tuple[str, ...], values: Iterable[Any], ids: object = None) -> Callable[[Test], Test]:
    """Run the decorated test on each of the values, like `pytest.mark.parametrize`, but as one test.

    A test of its own costs 8 ms of processor time, most of it in five workers that collect it. A case of a function
    without fixtures takes microseconds. A failure names its case. Several decorators give the product.

    names, values: as for `pytest.mark.parametrize`.
    """
    arguments = tuple(name.strip() for name in names.split(",")) if isinstance(names, str) else names
    cases = list(values)
    assert cases

    def decorate(test: Test) -> Test:
        @functools.wraps(test)
        def run(**given: Any) -> None:
            for value in cases:
                of_case = (value,) if len(arguments) == 1 else value
                case = dict(zip(arguments, of_case, strict=True))
                try:
                    test(**given, **case)
                except BaseException as error:
                    error.add_note(f"in the case {case!r}")
                    raise

        signature = inspect.signature(test)
        left = [one for name, one in signature.parameters.items() if name not in arguments]
        assert len(left) == len(signature.parameters) - len(arguments), f"{test.__name__} does not take {arguments}"
        run.__signature__ = signature.replace(parameters=left)  # type: ignore[attr-defined]
        return run

    return decorate
