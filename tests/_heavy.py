"""Cases of a test that a plain `nox` leaves out: `nox -s heavy` runs them with all other cases."""

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def all_but(cases: Iterable[Any], light: Collection[Any]) -> list[Any]:
    """Return the cases for `parametrize`; those that are not among `light` are heavy."""
    found = list(cases)
    missing = [each for each in light if each not in found]
    assert not missing, f"no case is {missing}"
    return [
        each if each in light else pytest.param(*_values(each), marks=pytest.mark.heavy)
        for each in found
    ]


def _values(case: Any) -> tuple[Any, ...]:
    return case if isinstance(case, tuple) else (case,)
