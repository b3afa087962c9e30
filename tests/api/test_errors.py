"""Every exception says who must act, descends from the right built-in exceptions,
and can be pickled.
"""

import copy
import pickle
import re

import pytest

from penstock import api
from penstock.api import (
    CleanupTimeout,
    IllegalDemand,
    InvalidStateError,
    LimitExceeded,
    NoElement,
    PenstockError,
    PositionNotRetained,
    RuleViolation,
    SlowSubscriber,
    StreamTimeout,
    UsageError,
)
from penstock.api import _errors as module

ALL = [
    each
    for each in vars(api).values()
    if isinstance(each, type) and issubclass(each, BaseException)
]

# The tree in the module's docstring, as pairs of a name and its depth.
DRAWN = [
    (match["name"], len(match["lines"]) // 4)
    for match in re.finditer(
        r"^    (?P<lines>[│├└─ ]*)(?P<name>[A-Z]\w+)", module.__doc__ or "", re.MULTILINE
    )
]


def _make(kind: type[BaseException]) -> BaseException:
    if issubclass(kind, RuleViolation):
        return kind("broken", rule="1.9")
    if issubclass(kind, LimitExceeded):
        return kind("too much", limit="buffer", value=16)
    if issubclass(kind, PositionNotRetained):
        return kind("gone", partition="0", position=3, earliest=5, latest=9)
    return kind("what happened")


def _drawn_parents() -> dict[str, str]:
    parents, path = {}, {}
    for name, depth in DRAWN:
        path[depth] = name
        if depth:
            parents[name] = path[depth - 1]
    return parents


def test_the_docstring_shows_the_tree() -> None:
    """Each exception stands under its base class."""
    drawn = _drawn_parents()
    assert {each.__name__ for each in ALL} == {"PenstockError", *drawn}
    assert drawn == {
        each.__name__: each.__bases__[0].__name__ for each in ALL if each is not PenstockError
    }


@pytest.mark.parametrize(
    ("kind", "builtin"),
    [
        (IllegalDemand, ValueError),
        (InvalidStateError, RuntimeError),
        (CleanupTimeout, TimeoutError),
        (StreamTimeout, TimeoutError),
        (NoElement, LookupError),
    ],
)
def test_some_are_also_built_in_exceptions(kind: type[Exception], builtin: type[Exception]) -> None:
    """Code that does not know penstock catches them by the built-in name."""
    with pytest.raises(builtin):
        raise kind("what happened")


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)
def test_each_is_a_penstock_error_with_its_text(kind: type[PenstockError]) -> None:
    """`except PenstockError` catches every error that penstock raises, and each is an Exception."""
    error = _make(kind)
    assert isinstance(error, PenstockError)
    assert isinstance(error, Exception)
    assert str(error) == error.args[0]


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize(
    "copied",
    [copy.copy, lambda error: pickle.loads(pickle.dumps(error))],
    ids=["copied", "pickled"],
)
def test_each_can_be_pickled(kind: type[PenstockError], copied) -> None:
    """An exception that cannot be unpickled breaks a whole process pool. Notes are kept."""
    error = _make(kind)
    error.add_note("seen on the way")
    twin = copied(error)
    assert type(twin) is kind
    assert str(twin) == str(error)
    assert vars(twin) == vars(error)


def test_a_violation_names_its_rule_and_a_limit_its_bound() -> None:
    """The values are attributes, so that no program parses a message."""
    assert RuleViolation("broken", rule="2.13").rule == "2.13"
    slow = SlowSubscriber("too slow", limit="buffer", value=3)
    assert (slow.limit, slow.value) == ("buffer", 3)
    assert isinstance(slow, LimitExceeded)


@pytest.mark.parametrize("kind", [RuleViolation, LimitExceeded, SlowSubscriber])
def test_rule_limit_and_value_are_required(kind: type[PenstockError]) -> None:
    """A violation without a rule would be of no use."""
    with pytest.raises(TypeError):
        kind("without figures")


def test_the_branches_of_the_tree_are_separate() -> None:
    """To catch one kind of fault does not catch another one."""
    others = [each for each in ALL if PenstockError in each.__bases__ and each is not UsageError]
    assert len(others) >= 10
    assert [each for each in others if issubclass(each, UsageError)] == []
