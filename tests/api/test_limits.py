"""The record of bounds: frozen, whole, and each with its evidence."""

import ast
import inspect
from dataclasses import FrozenInstanceError, fields, replace
from itertools import pairwise

import pytest

from penstock.api import Limits, UsageError
from penstock.api import _limits as module


def test_a_record_of_limits_never_changes() -> None:
    """What a connection was promised cannot be taken back; a changed copy is another record."""
    limits = Limits()
    with pytest.raises(FrozenInstanceError):
        limits.max_frame = 1  # type: ignore[misc]  # the point: refused
    assert replace(limits, max_frame=1).max_frame == 1
    assert limits.max_frame == 1 << 20


def test_limits_are_given_by_name() -> None:
    """Nobody can tell the twenty-third number from the twenty-fourth."""
    with pytest.raises(TypeError):
        Limits(1.0)  # type: ignore[misc]  # the point: refused


def test_each_limit_tells_its_evidence() -> None:
    """Below each field stands a text that says what it bounds, and why there."""
    (record,) = (node for node in ast.parse(inspect.getsource(module)).body if isinstance(node, ast.ClassDef))
    told = {
        field.target.id
        for field, after in pairwise(record.body)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(after, ast.Expr)
    }
    assert {field.name for field in fields(Limits)} == told


@pytest.mark.parametrize("name", [field.name for field in fields(Limits)])
def test_a_limit_that_makes_no_sense_is_refused(name: str) -> None:
    """Zero, less, what is not a number: the message names the field."""
    for nonsense in (0, -1, "many", True, float("nan")):
        with pytest.raises(UsageError, match=name):
            replace(Limits(), **{name: nonsense})


def test_the_bound_on_idle_subscriptions_may_be_left_out() -> None:
    """None says that there is none."""
    assert Limits(idle_subscription_age=None).idle_subscription_age is None
