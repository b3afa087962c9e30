"""The life of a connection as a table: every state with every move, on a real session."""

from itertools import product

import pytest

from penstock.api import Role
from penstock.protocols import rsio
from penstock.session import ConnectionState
from penstock.session._states import NEXT_STATE, Move
from tests.session._pair import RawPeer

CELLS = list(product(ConnectionState, Move))


def in_state(state: ConnectionState) -> RawPeer:
    """A session that has come to this state: a client where it must have greeted first, a server else."""
    raw = RawPeer(Role.CLIENT if state is ConnectionState.GREETING else Role.SERVER)
    if state in {ConnectionState.OPEN, ConnectionState.LEAVING}:
        raw.greet()
    if state is ConnectionState.LEAVING:
        raw.session.close("enough")
    if state is ConnectionState.OVER:
        raw.session.end_of_input()
    assert raw.session.state is state
    raw.hear()
    return raw


def perform(raw: RawPeer, move: Move) -> None:
    """Do what the move is named for, as the world would: through the session's front."""
    greeting = rsio.ServerHello() if raw.session.role is Role.CLIENT else rsio.ClientHello()
    match move:
        case Move.GREETED | Move.WELCOMED:
            raw.say(greeting)  # a server greets when it has been greeted
        case Move.LEFT:
            raw.session.close("enough")
        case Move.TOLD_TO_LEAVE:
            raw.say(rsio.Goodbye(reason="bye"))
        case Move.CUT:
            raw.session.end_of_input()


@pytest.mark.parametrize(("state", "move"), CELLS, ids=[f"{state.name}-{move.name}" for state, move in CELLS])
def test_each_state_takes_each_move_or_stays_sound(state: ConnectionState, move: Move) -> None:
    """Where the table has a cell, it says what follows; where it has none, nothing is raised, and an end stays an end."""
    raw = in_state(state)
    perform(raw, move)
    after = raw.session.state
    greets = move in {Move.GREETED, Move.WELCOMED}
    if greets and state in {ConnectionState.FRESH, ConnectionState.GREETING}:
        assert after is ConnectionState.OPEN
    elif greets and state is ConnectionState.OPEN:
        assert after is ConnectionState.LEAVING  # a second hello: the peer's fault
    else:
        assert after is NEXT_STATE.get((state, move), state)


@pytest.mark.parametrize(("state", "move"), CELLS, ids=[f"{state.name}-{move.name}" for state, move in CELLS])
def test_no_move_leads_back(state: ConnectionState, move: Move) -> None:
    """A connection's life goes one way, and ends."""
    order = list(ConnectionState)
    following = NEXT_STATE.get((state, move))
    assert following is None or order.index(following) > order.index(state)


def test_the_end_has_no_moves_and_can_be_reached_from_everywhere() -> None:
    """The transport may end at any time."""
    alive = set(ConnectionState) - {ConnectionState.OVER}
    assert {state for state, _ in NEXT_STATE} == alive
    assert all(NEXT_STATE[state, Move.CUT] is ConnectionState.OVER for state in alive)
    assert all(NEXT_STATE[state, Move.TOLD_TO_LEAVE] is ConnectionState.OVER for state in alive)


@pytest.mark.parametrize("state", [ConnectionState.FRESH, ConnectionState.GREETING, ConnectionState.OPEN])
def test_a_goodbye_is_answered_once_from_every_state_that_has_said_none(state: ConnectionState) -> None:
    """Even by a server that has heard no hello: the peer need not wait for its deadline."""
    raw = in_state(state)
    raw.say(rsio.Goodbye(reason="bye"), rsio.Goodbye(reason="bye"))
    assert raw.hear() == [rsio.Goodbye(reason="")]
    assert len(raw.owner.ended) == 1
