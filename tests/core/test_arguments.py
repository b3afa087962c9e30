"""Arguments are checked at the call, and each refusal says what was given and what to give."""

from functools import partial

import pytest

from penstock.api import Publisher, UsageError
from penstock.core._arguments import (
    check_count,
    check_function,
    check_seconds,
    has_methods_of,
    name_of,
)
from tests.core._foreign import CountingPublisher


@pytest.mark.parametrize("seconds", [1, 0.5, 1e-300, 1e300, 2**60])
def test_a_finite_time_above_zero_is_accepted(seconds: float) -> None:
    """An int is accepted, too, and becomes a float."""
    assert check_seconds(seconds, "the delay") == seconds
    assert type(check_seconds(seconds, "the delay")) is float


def test_a_time_of_zero_is_accepted_if_allowed() -> None:
    """A delay may be 0, an interval may not."""
    assert check_seconds(0, "the delay", zero=True) == 0.0
    with pytest.raises(
        UsageError, match=r"^the interval is 0; it is a time in seconds, above 0, and finite$"
    ):
        check_seconds(0, "the interval")


@pytest.mark.parametrize("zero", [True, False])
@pytest.mark.parametrize(
    "wrong",
    [
        -1,
        -0.001,
        float("inf"),
        float("-inf"),
        float("nan"),
        True,
        False,
        None,
        "1",
        10**400,
        -(10**400),
        1j,
    ],
    ids=lambda value: repr(value)[:12],
)
def test_a_value_that_is_not_a_time_is_refused(wrong, zero: bool) -> None:
    """An int above all floats, a bool, not-a-number: each would fail much later, inside a task."""
    allowed = "0 or more" if zero else "above 0"
    with pytest.raises(
        UsageError, match=rf"^the delay is .*; it is a time in seconds, {allowed}, and finite$"
    ):
        check_seconds(wrong, "the delay", zero=zero)


@pytest.mark.parametrize(("count", "least"), [(0, 0), (1, 1), (2**70, 0)])
def test_a_count_of_at_least_the_minimum_is_accepted(count: int, least: int) -> None:
    """The minimum itself is legal."""
    assert check_count(count, "buffer", least=least) == count


@pytest.mark.parametrize(
    ("wrong", "least"), [(-1, 0), (0, 1), (True, 0), (1.0, 0), ("1", 0), (None, 0)]
)
def test_a_value_that_is_not_a_count_is_refused(wrong, least: int) -> None:
    """A bool is not a count, nor is a float with a whole value."""
    with pytest.raises(UsageError) as caught:
        check_count(wrong, "buffer", least=least)
    assert (
        str(caught.value)
        == f"buffer={wrong!r}; give how many elements, an integer of at least {least}"
    )


def test_any_callable_is_a_function() -> None:
    """It is returned unchanged."""
    assert check_function(len, "the hook", "one argument") is len
    with pytest.raises(UsageError, match=r"^the hook is 5; give a function of one argument$"):
        check_function(5, "the hook", "one argument")  # type: ignore[type-var]  # a mistake on purpose


def test_a_class_is_not_one_of_its_objects() -> None:
    """Else a forgotten call would be a TypeError inside some task."""
    assert has_methods_of(CountingPublisher(1), Publisher)
    assert not has_methods_of(CountingPublisher, Publisher)
    assert not has_methods_of(object(), Publisher)


class _Odd:
    def __init__(self) -> None:
        self.__qualname__ = 5


@pytest.mark.parametrize(
    ("thing", "name"),
    [
        (len, "len"),
        ([], "list"),
        (partial(partial(len), 1), "len"),
        (str.join, "str.join"),
        (int, "int"),
        (_Odd(), "_Odd"),
    ],
)
def test_a_name_for_messages(thing: object, name: str) -> None:
    """A function's name, also behind bound arguments; for other objects the type. A
    `__qualname__` that is not a str is ignored.
    """
    assert name_of(thing) == name
