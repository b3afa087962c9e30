"""Demand adds up, saturates at 2^63-1, and is refused if it is not a positive integer."""

import enum
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.api import UNBOUNDED, IllegalDemand, UsageError, add_demand, check_demand

LEGAL = st.integers(min_value=1, max_value=2**80)
OUTSTANDING = st.integers(min_value=0, max_value=UNBOUNDED)


class Size(enum.IntEnum):
    SMALL = 3


class Liar(int):
    """An int subclass whose methods return something other than its value."""

    def __int__(self) -> int:
        return -5

    def __index__(self) -> int:
        return 0

    def __le__(self, other: object) -> bool:
        return False


class Unprintable:
    def __repr__(self) -> str:
        raise RuntimeError("no repr today")


def test_unbounded_is_the_bound_of_the_standard() -> None:
    """Rule 3.17: demand up to 2^63-1 is supported,
    and from there on it may be treated as unbounded.
    """
    assert UNBOUNDED == 9_223_372_036_854_775_807


@given(OUTSTANDING, OUTSTANDING)
def test_addition_saturates_at_the_bound(one: int, other: int) -> None:
    """Rule 3.8 is a sum, rule 3.17 its bound."""
    assert min(one + other, UNBOUNDED) == add_demand(one, other)


@given(OUTSTANDING, OUTSTANDING, OUTSTANDING)
def test_the_order_of_requests_does_not_matter(one: int, other: int, third: int) -> None:
    """Saturating addition is commutative and associative."""
    assert (
        add_demand(add_demand(one, other), third)
        == add_demand(one, add_demand(other, third))
        == add_demand(third, add_demand(other, one))
    )


@pytest.mark.parametrize("below", [0, 1, 2, 1000])
def test_the_bound_is_reached_exactly_and_never_exceeded(below: int) -> None:
    """UNBOUNDED - 1 and 1 is UNBOUNDED; UNBOUNDED and 1 is UNBOUNDED."""
    assert UNBOUNDED - below == add_demand(UNBOUNDED - below - 1, 1)
    assert add_demand(UNBOUNDED - below, below + 1) == UNBOUNDED


@given(LEGAL)
def test_a_positive_integer_is_legal_and_limited_to_the_bound(n: int) -> None:
    """Every positive integer is legal, 2^63 and 2^80 too (rule 3.17)."""
    assert min(n, UNBOUNDED) == check_demand(n)


@given(st.integers(max_value=0))
def test_a_demand_that_is_not_positive_is_refused(n: int) -> None:
    """The message has the words that rule 3.9 demands."""
    with pytest.raises(
        IllegalDemand,
        match=r"is a non-positive subscription request; demand is at least 1 \(rule 3\.9\)",
    ):
        check_demand(n)


def test_the_refusal_of_zero_says_what_to_call_instead() -> None:
    """A program that requests 0 wants to stop, or to wait."""
    with pytest.raises(IllegalDemand) as caught:
        check_demand(0)
    assert (
        str(caught.value)
        == "request(0) is a non-positive subscription request; demand is at least 1 (rule 3.9). "
        "To stop receiving, call cancel(); to pause, do not request"
    )


@pytest.mark.parametrize(
    "wrong",
    [True, False, None, 1.0, 1.5, float("inf"), "1", b"1", [1], Fraction(3), 1j, object],
    ids=repr,
)
def test_a_demand_that_is_not_an_integer_is_refused(wrong: object) -> None:
    """A float with a whole value, a text and a bool are not demands."""
    with pytest.raises(
        IllegalDemand,
        match=r"^request\(\) was called with .*; demand is a positive integer \(rule 3\.9\)",
    ):
        check_demand(wrong)


def test_the_refusal_is_a_usage_error_and_a_value_error() -> None:
    """The caller must act. The standard's IllegalArgument is ValueError in Python."""
    assert issubclass(IllegalDemand, UsageError)
    assert issubclass(IllegalDemand, ValueError)


def test_a_member_of_an_int_enum_becomes_a_plain_int() -> None:
    """It is an integer, and its number is kept."""
    checked = check_demand(Size.SMALL)
    assert checked == 3
    assert type(checked) is int


def test_an_int_subclass_counts_with_its_own_value() -> None:
    """Penstock's arithmetic calls no method that a user wrote."""
    checked = check_demand(Liar(7))
    assert checked == 7
    assert type(checked) is int
    with pytest.raises(IllegalDemand):
        check_demand(Liar(-1))


@pytest.mark.parametrize(
    "wrong", [-(10**5000), Unprintable(), "x" * 10_000], ids=["huge", "unprintable", "long"]
)
def test_a_refusal_does_not_raise_another_error(wrong: object) -> None:
    """Python refuses to print some integers, and a foreign repr may raise:
    the caller still gets IllegalDemand.
    """
    with pytest.raises(IllegalDemand) as caught:
        check_demand(wrong)
    assert len(str(caught.value)) < 300
