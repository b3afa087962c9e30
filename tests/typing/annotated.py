"""Type-checked, never run: the form for mypy where it cannot infer: an operator with a name and a type."""

from typing import assert_type

import penstock
from penstock import Source, ops
from penstock.operators import Operator


def piping() -> None:
    """An annotated operator keeps the element type for every type checker."""
    three: Operator[int, int] = ops.take(3)
    assert_type(penstock.pipe([1, 2, 3, 4], three, ops.map(str)), Source[str])
