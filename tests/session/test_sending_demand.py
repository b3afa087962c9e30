"""The demand of a sent stream: reserve, commit, roll back, and the sum that always holds."""

from hypothesis import given
from hypothesis import strategies as st

from penstock.api import UNBOUNDED
from penstock.session import SendingStream
from tests.session._pair import RawPeer


def stream_without_demand() -> SendingStream:
    return SendingStream(RawPeer().session.channel, 0, "s", 0)


def test_no_more_is_reserved_than_was_granted() -> None:
    """Of 100 wanted elements, the five granted ones are reserved."""
    ledger = stream_without_demand()
    ledger.grant(5)
    assert ledger.reserve(100) == 5
    assert ledger.reserve(1) == 0
    assert (ledger.available, ledger.reserved) == (0, 5)


def test_rolled_back_elements_are_available_again() -> None:
    """Five are reserved, two are sent, three are rolled back."""
    ledger = stream_without_demand()
    ledger.grant(5)
    ledger.reserve(5)
    ledger.commit(2)
    ledger.roll_back(3)
    assert (ledger.available, ledger.reserved) == (3, 0)


def test_unbounded_demand_stays_unbounded() -> None:
    """Rule 3.17: a reservation takes nothing from unbounded demand,
    and a grant does not overflow it.
    """
    ledger = stream_without_demand()
    ledger.grant(UNBOUNDED - 1)
    ledger.grant(5)
    assert ledger.available == UNBOUNDED
    ledger.commit(ledger.reserve(1000))
    assert ledger.available == UNBOUNDED
    ledger.grant(UNBOUNDED)
    assert ledger.available == UNBOUNDED


@given(
    moves=st.lists(
        st.tuples(st.sampled_from(["grant", "reserve", "commit", "roll_back"]), st.integers(1, 9)),
        max_size=60,
    )
)
def test_nothing_is_sent_that_was_not_granted(moves: list[tuple[str, int]]) -> None:
    """In every order of moves: granted = available + reserved + sent."""
    ledger = stream_without_demand()
    granted = sent = 0
    for move, n in moves:
        used = min(n, ledger.reserved)
        if move == "grant":
            ledger.grant(n)
            granted += n
        elif move == "reserve":
            ledger.reserve(n)
        elif move == "commit":
            ledger.commit(used)
            sent += used
        else:
            ledger.roll_back(used)
        assert granted == ledger.available + ledger.reserved + sent
        assert min(ledger.available, ledger.reserved) >= 0
