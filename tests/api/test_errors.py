"""Every exception says who must act, is what Python's own words say it is, and survives being copied."""

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
    RuleViolation,
    SlowSubscriber,
    StreamTimeout,
    UsageError,
)
from penstock.api import _errors as module

ALL = [each for each in vars(api).values() if isinstance(each, type) and issubclass(each, BaseException)]

# The drawing in the module's docstring, as pairs of a name and how deep it stands.
DRAWN = [
    (match["name"], len(match["lines"]) // 4)
    for match in re.finditer(r"^    (?P<lines>[│├└─ ]*)(?P<name>[A-Z]\w+)", module.__doc__ or "", re.MULTILINE)
]


def _make(kind: type[BaseException]) -> BaseException:
    if issubclass(kind, RuleViolation):
        return kind("broken", rule="1.9")
    if issubclass(kind, LimitExceeded):
        return kind("too much", limit="buffer", value=16)
    return kind("what happened")


def _drawn_parents() -> dict[str, str]:
    parents, path = {}, {}
    for name, depth in DRAWN:
        path[depth] = name
        if depth:
            parents[name] = path[depth - 1]
    return parents


def test_the_drawing_is_the_tree() -> None:
    """The docstring shows each exception under the one that it descends from."""
    drawn = _drawn_parents()
    assert {each.__name__ for each in ALL} == {"PenstockError", *drawn}
    assert drawn == {each.__name__: each.__bases__[0].__name__ for each in ALL if each is not PenstockError}


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
def test_some_are_also_what_python_calls_them(kind: type[Exception], builtin: type[Exception]) -> None:
    """Code that has never heard of us catches them by the name that it knows."""
    with pytest.raises(builtin):
        raise kind("what happened")


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)
def test_each_is_caught_by_the_root_and_tells_its_text(kind: type[PenstockError]) -> None:
    """`except PenstockError` catches whatever we raise by ourselves; it is an Exception, not more."""
    error = _make(kind)
    assert isinstance(error, PenstockError)
    assert isinstance(error, Exception)
    assert str(error) == error.args[0]


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("copied", [copy.copy, lambda error: pickle.loads(pickle.dumps(error))], ids=["copied", "pickled"])
def test_each_survives_the_way_into_another_process(kind: type[PenstockError], copied) -> None:
    """What a pool of processes cannot unpickle takes the whole pool down; notes travel along."""
    error = _make(kind)
    error.add_note("seen on the way")
    twin = copied(error)
    assert type(twin) is kind
    assert str(twin) == str(error)
    assert vars(twin) == vars(error)


def test_a_violation_names_its_rule_and_a_limit_its_bound() -> None:
    """The figures are attributes, so that nobody parses a message."""
    assert RuleViolation("broken", rule="2.13").rule == "2.13"
    slow = SlowSubscriber("too slow", limit="buffer", value=3)
    assert (slow.limit, slow.value) == ("buffer", 3)
    assert isinstance(slow, LimitExceeded)


@pytest.mark.parametrize("kind", [RuleViolation, LimitExceeded, SlowSubscriber])
def test_the_figures_are_not_optional(kind: type[PenstockError]) -> None:
    """A violation without a rule would leave its reader with a search."""
    with pytest.raises(TypeError):
        kind("without figures")


def test_a_usage_error_is_no_fault_of_anybody_elses() -> None:
    """The branches stay apart: who catches one kind of fault does not catch another's."""
    others = [each for each in ALL if PenstockError in each.__bases__ and each is not UsageError]
    assert len(others) >= 10
    assert [each for each in others if issubclass(each, UsageError)] == []
