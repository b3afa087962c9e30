"""What callers give is checked where they give it, and each refusal says what was given and what to give."""

from functools import partial

import pytest

from penstock.api import Publisher, UsageError
from penstock.core._arguments import check_count, check_function, check_seconds, has_methods_of, name_of
from tests.core._foreign import Counting


@pytest.mark.parametrize("seconds", [1, 0.5, 1e-300, 1e300, 2**60])
def test_a_finite_time_above_zero_is_taken(seconds: float) -> None:
    """An int is a time, too; it becomes a float."""
    assert check_seconds(seconds, "the delay") == seconds
    assert type(check_seconds(seconds, "the delay")) is float


def test_no_time_at_all_is_taken_only_where_that_makes_sense() -> None:
    """A delay may be 0, an interval may not."""
    assert check_seconds(0, "the delay", zero=True) == 0.0
    with pytest.raises(UsageError, match=r"^the interval is 0; it is a time in seconds, above 0, and finite$"):
        check_seconds(0, "the interval")


@pytest.mark.parametrize("zero", [True, False])
@pytest.mark.parametrize(
    "wrong",
    [-1, -0.001, float("inf"), float("-inf"), float("nan"), True, False, None, "1", 10**400, -(10**400), 1j],
    ids=lambda value: repr(value)[:12],
)
def test_what_is_no_time_is_refused(wrong, zero: bool) -> None:
    """An int beyond all floats, a truth value, not-a-number: each would make trouble much later, inside a task."""
    allowed = "0 or more" if zero else "above 0"
    with pytest.raises(UsageError, match=rf"^the delay is .*; it is a time in seconds, {allowed}, and finite$"):
        check_seconds(wrong, "the delay", zero=zero)


@pytest.mark.parametrize(("count", "least"), [(0, 0), (1, 1), (2**70, 0)])
def test_a_count_from_the_least_on_is_taken(count: int, least: int) -> None:
    """The bound itself is legal."""
    assert check_count(count, "buffer", least=least) == count


@pytest.mark.parametrize(("wrong", "least"), [(-1, 0), (0, 1), (True, 0), (1.0, 0), ("1", 0), (None, 0)])
def test_what_is_no_such_count_is_refused(wrong, least: int) -> None:
    """A truth value is no count, nor is a float that happens to be whole."""
    with pytest.raises(UsageError) as caught:
        check_count(wrong, "buffer", least=least)
    assert str(caught.value) == f"buffer={wrong!r}; give how many elements, an integer of at least {least}"


def test_a_function_is_whatever_can_be_called() -> None:
    """It comes back as it is."""
    assert check_function(len, "the hook", "one argument") is len
    with pytest.raises(UsageError, match=r"^the hook is 5; give a function of one argument$"):
        check_function(5, "the hook", "one argument")  # type: ignore[type-var]  # a mistake on purpose


def test_a_class_is_not_one_of_its_objects() -> None:
    """Who forgot the call would otherwise get a TypeError out of some task."""
    assert has_methods_of(Counting(1), Publisher)
    assert not has_methods_of(Counting, Publisher)
    assert not has_methods_of(object(), Publisher)


class _Odd:
    def __init__(self) -> None:
        self.__qualname__ = 5


@pytest.mark.parametrize(
    ("thing", "name"),
    [(len, "len"), ([], "list"), (partial(partial(len), 1), "len"), (str.join, "str.join"), (int, "int"), (_Odd(), "_Odd")],
)
def test_a_thing_is_called_what_a_person_would_call_it(thing: object, name: str) -> None:
    """A function by its name, arguments bound to it or not, anything else by its type; something odd in the place of a name is no name."""
    assert name_of(thing) == name
