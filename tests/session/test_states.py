"""The lives of connections and streams:
every state with every event, in the tables and on a real session.
"""

from collections.abc import Mapping
from enum import Enum
from itertools import product
from typing import Any

import pytest

from penstock.api import InternalError, Role
from penstock.protocols import rsio
from penstock.session import ConnectionState
from penstock.session._states import (
    CONNECTION_MOVES,
    RECEIVING_MOVES,
    SENDING_MOVES,
    ConnectionEvent,
    ReceivingEvent,
    ReceivingState,
    SendingEvent,
    SendingState,
)
from tests.session._pair import RawPeer

TABLES: list[tuple[Mapping[Any, Any], type[Enum], type[Enum]]] = [
    (CONNECTION_MOVES, ConnectionState, ConnectionEvent),
    (SENDING_MOVES, SendingState, SendingEvent),
    (RECEIVING_MOVES, ReceivingState, ReceivingEvent),
]
PAIRS = [
    (table, state, event)
    for table, states, events in TABLES
    for state, event in product(states, events)
]
FINAL = {
    ConnectionState.CLOSED,
    ConnectionState.CLOSED_BY_PEER,
    ConnectionState.LOST,
    SendingState.ENDED,
    ReceivingState.CANCELLED,
    ReceivingState.ENDED,
}


def _name(pair: Any) -> str:
    return f"{type(pair).__name__}.{pair.name}" if isinstance(pair, Enum) else ""


@pytest.mark.parametrize(("table", "state", "event"), PAIRS, ids=_name)
def test_a_pair_has_a_row_or_an_error_with_both_names(
    table: Mapping[Any, Any], state: Enum, event: Enum
) -> None:
    """The test walks the whole product of states and events."""
    if (state, event) in table:
        return
    with pytest.raises(InternalError) as caught:
        table[state, event]
    assert f"{type(event).__name__}.{event.name} in {type(state).__name__}.{state.name}" in str(
        caught.value
    )


@pytest.mark.parametrize(
    ("table", "state", "event"), [pair for pair in PAIRS if pair[1:] in pair[0]], ids=_name
)
def test_no_row_leads_back(table: Mapping[Any, Any], state: Enum, event: Enum) -> None:
    """States are declared in the order of life, and a row leads to a later one."""
    order = list(type(state))
    assert order.index(table[state, event]) > order.index(state)


@pytest.mark.parametrize(
    ("table", "states", "events"), TABLES, ids=["connection", "sending", "receiving"]
)
def test_only_final_states_have_no_row(
    table: Mapping[Any, Any], states: type[Enum], events: type[Enum]
) -> None:
    """Every other state can be left, and every state and event is in some row."""
    assert {
        state for state in states if not any((state, event) in table for event in events)
    } == FINAL & set(states)
    first = next(iter(states))
    assert {first, *table.values()} == set(states)
    assert {event for _, event in table} == set(events)


def test_the_facts_of_a_connection_state_follow_from_the_table() -> None:
    """A state is over if it has no row, and closing if no goodbye may be sent in it."""
    for state in ConnectionState:
        assert state.is_over is (state in FINAL)
        assert state.is_closing is ((state, ConnectionEvent.GOODBYE_SENT) not in CONNECTION_MOVES)


# --- the same table on a real session

REACHED = [
    state
    for state in ConnectionState
    if state not in {ConnectionState.EXAMINING, ConnectionState.CLOSING_UNANSWERED}
]
"""All states but two that RS.io does not have: it has no introductions, and it answers goodbyes."""


def in_state(state: ConnectionState) -> RawPeer:
    """Return a peer whose session is in `state`:
    a client's if that must have sent its hello first, a server's else.
    """
    raw = RawPeer(Role.CLIENT if state is ConnectionState.GREETING else Role.SERVER)
    if state not in {ConnectionState.FRESH, ConnectionState.GREETING}:
        raw.handshake()
    if state in {ConnectionState.CLOSING, ConnectionState.CLOSED}:
        raw.session.close("enough")
    if state in {ConnectionState.CLOSED, ConnectionState.CLOSED_BY_PEER}:
        raw.send(rsio.Goodbye(reason="bye"))
    if state is ConnectionState.LOST:
        raw.session.end_of_input()
    assert raw.session.state is state
    raw.receive()
    return raw


def perform(raw: RawPeer, event: ConnectionEvent) -> None:
    """Cause `event` through the session's front door."""
    hello = rsio.ServerHello() if raw.session.channel.role is Role.CLIENT else rsio.ClientHello()
    match event:
        case (
            ConnectionEvent.HELLO_SENT | ConnectionEvent.HELLO_RECEIVED | ConnectionEvent.INTRODUCED
        ):
            raw.send(hello)  # a server sends its hello when it gets the client's
        case ConnectionEvent.GOODBYE_SENT | ConnectionEvent.UNANSWERED_GOODBYE_SENT:
            raw.session.close("enough")
        case ConnectionEvent.GOODBYE_RECEIVED:
            raw.send(rsio.Goodbye(reason="bye"))
        case ConnectionEvent.TRANSPORT_ENDED:
            raw.session.end_of_input()


@pytest.mark.parametrize(("state", "event"), list(product(REACHED, ConnectionEvent)), ids=_name)
def test_a_session_takes_each_event_in_each_state(
    state: ConnectionState, event: ConnectionEvent
) -> None:
    """If the table has a row, the session moves as it says.
    If not, nothing is raised, and an ended session stays ended.
    """
    raw = in_state(state)
    perform(raw, event)
    after = raw.session.state
    if event in {
        ConnectionEvent.HELLO_SENT,
        ConnectionEvent.HELLO_RECEIVED,
        ConnectionEvent.INTRODUCED,
    }:
        opened = state in {ConnectionState.FRESH, ConnectionState.GREETING}
        second_hello = ConnectionState.CLOSING if state is ConnectionState.OPEN else state
        assert after is (ConnectionState.OPEN if opened else second_hello)
    else:
        event = (
            ConnectionEvent.GOODBYE_SENT
            if event is ConnectionEvent.UNANSWERED_GOODBYE_SENT
            else event
        )
        assert after is CONNECTION_MOVES.get((state, event), state)


@pytest.mark.parametrize(
    "state", [ConnectionState.FRESH, ConnectionState.GREETING, ConnectionState.OPEN]
)
def test_a_goodbye_is_answered_once_in_every_state_before_closing(state: ConnectionState) -> None:
    """A server that has received no hello answers too,
    so the peer need not wait for its deadline.
    """
    raw = in_state(state)
    raw.send(rsio.Goodbye(reason="bye"), rsio.Goodbye(reason="bye"))
    assert raw.receive() == [rsio.Goodbye(reason="")]
    assert len(raw.delegate.ended) == 1
