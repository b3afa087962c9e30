"""The lives of a connection and of its streams, as tables.

A row is a state, an event, and the state after it. A pair without a row cannot happen: looking it
up raises `InternalError` with both names. A mistake of a peer never gets this far; the dialect and
the session refuse it before they move a state.

The tables are printed in the documentation, and a test walks the whole product of states
and events.
"""

from enum import Enum
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from penstock.api import InternalError

S = TypeVar("S", bound=Enum)
E = TypeVar("E", bound=Enum)


class Moves(dict[tuple[S, E], S], Generic[S, E]):
    """A table of moves: the state after each pair of a state and an event that may happen.

    It is a dict, so that a look-up on the path of every request calls no function.
    """

    def __missing__(self, pair: tuple[S, E]) -> S:
        state, event = pair
        raise InternalError(
            f"{type(event).__name__}.{event.name} in {type(state).__name__}.{state.name}: no such "
            "move. This is a fault of penstock's, or of a plugin's dialect; please report it with "
            "this message"
        )


class State(Enum):
    """A member of one of the enums below, with the hash of its identity."""

    # Enum hashes the member's name in Python. Without that, and with some calls fewer, a request
    # took 19.8 us instead of 21.4.
    if not TYPE_CHECKING:  # a type checker sees the method of Enum, which has the same type
        __hash__ = object.__hash__


# The values are for people: the documentation prints them. Code compares members.
class ConnectionState(State):
    """The life of a connection, seen from one side."""

    FRESH = "nothing was sent or received yet"
    GREETING = "this side's hello is out, the peer's is not in"
    EXAMINING = "the peer has introduced itself, and the service examines it; received bytes wait"
    OPEN = "both hellos are exchanged"
    CLOSING = "this side's goodbye is out; what arrives is discarded until the peer's goodbye"
    # With CLOSING alone, leaving such a connection took the whole Limits.goodbye_timeout:
    # 2.0 s, and 1 ms with this state.
    CLOSING_UNANSWERED = (
        "this side's goodbye is out, in a protocol whose goodbyes have no answer; the connection "
        "ends once it is written"
    )
    CLOSED = (
        "both goodbyes are exchanged, this side's first or both at once; the peer sends nothing "
        "more"
    )
    CLOSED_BY_PEER = "both goodbyes are exchanged, the peer's first; the peer closes the transport"
    LOST = "the transport ended before both goodbyes were exchanged"

    # Set below. Plain attributes, because the path of every message looks at `is_closing`:
    # a property costs 60 ns more.
    is_closing: bool
    is_over: bool


class ConnectionEvent(State):
    """An event in the life of a connection."""

    HELLO_SENT = "this side sends its hello"
    INTRODUCED = "the peer sends an introduction that the service examines"
    HELLO_RECEIVED = "the peer's hello is accepted"
    GOODBYE_SENT = "this side sends a goodbye"
    UNANSWERED_GOODBYE_SENT = "this side sends a goodbye that the protocol does not answer"
    GOODBYE_RECEIVED = "the peer sends a goodbye"
    TRANSPORT_ENDED = "the transport ends, or the goodbye's deadline passes"


class SendingState(State):
    """The life of a stream whose publisher is on this side."""

    REQUESTED = "the peer has subscribed; the service has not decided"
    # Publishers that wait for demand are attached with the first request(n), so
    # that an idle stream costs no task.
    AWAITING_DEMAND = "accepted; no publisher is attached"
    AWAITING_ROOM = (
        "accepted, and the demand has come; the publisher is attached when there is room for its "
        "element"
    )
    # Some protocols have a message for the acceptance. Sent first, it would tell that a name exists
    # which the publisher then denies.
    UNANNOUNCED = "the publisher is attached; the acceptance goes out with its first signal"
    LIVE = "the publisher is attached, and the peer knows that the stream is accepted"
    FLUSHING = "the publisher has completed; elements that it gave are still being sent"
    FAILING = "the publisher has failed; elements that it gave are still being sent, then its error"
    ENDED = "nothing more is sent"


class SendingEvent(State):
    """An event in the life of a stream whose publisher is on this side."""

    ACCEPTED = "the service accepts the stream"
    REFUSED = "the service refuses the stream"
    ATTACHED = "the publisher is attached"
    QUEUED = "the service accepts the stream, whose demand has come"
    DEFERRED = "the publisher is attached; the peer hears of the acceptance with its first signal"
    ANNOUNCED = "the acceptance is sent, because a signal of the publisher follows"
    COMPLETED = "the publisher completes"
    FLUSHED = "the last element is handed to the outbox, and the end after it"
    FAILED = "the publisher fails, or breaks its contract"
    CANCELLED = "the peer cancels or breaks the stream's contract, or the connection ends"


class ReceivingState(State):
    """The life of a stream whose publisher is on the peer's side."""

    NEW = "the subscriber has its subscription; nothing was sent"
    REQUESTED = "the subscribe is sent; the peer has not answered"
    LIVE = "the peer has accepted"
    CANCELLED = "this side has cancelled; the peer may still send"
    ENDED = "the peer has ended the stream, or the connection has ended"


class ReceivingEvent(State):
    """An event in the life of a stream whose publisher is on the peer's side."""

    SUBSCRIBED = "the subscribe is sent, with the demand so far"
    ACCEPTED = "the peer accepts"
    CANCELLED = "the subscriber cancels, or the peer breaks the stream's contract"
    COMPLETED = "the peer completes the stream"
    FAILED = "the peer refuses or fails the stream, or the connection ends"


# Short names keep a row on one line, so that a table reads as a table.
_C, _CE = ConnectionState, ConnectionEvent
CONNECTION_MOVES: Final = Moves[ConnectionState, ConnectionEvent](
    {
        (_C.FRESH, _CE.HELLO_SENT): _C.GREETING,
        (_C.FRESH, _CE.GOODBYE_SENT): _C.CLOSING,
        # A client of another protocol gets an answer in that protocol, or none.
        (_C.FRESH, _CE.UNANSWERED_GOODBYE_SENT): _C.CLOSING_UNANSWERED,
        # A refusal needs no hello: a client on the wrong port, or a server with another version,
        # says goodbye first.
        (_C.FRESH, _CE.GOODBYE_RECEIVED): _C.CLOSED_BY_PEER,
        (_C.FRESH, _CE.TRANSPORT_ENDED): _C.LOST,
        (_C.GREETING, _CE.INTRODUCED): _C.EXAMINING,
        (_C.GREETING, _CE.HELLO_RECEIVED): _C.OPEN,
        (_C.GREETING, _CE.GOODBYE_SENT): _C.CLOSING,
        (_C.GREETING, _CE.GOODBYE_RECEIVED): _C.CLOSED_BY_PEER,
        (_C.GREETING, _CE.TRANSPORT_ENDED): _C.LOST,
        (_C.EXAMINING, _CE.HELLO_RECEIVED): _C.OPEN,
        (_C.EXAMINING, _CE.GOODBYE_SENT): _C.CLOSING,
        (_C.EXAMINING, _CE.GOODBYE_RECEIVED): _C.CLOSED_BY_PEER,
        (_C.EXAMINING, _CE.TRANSPORT_ENDED): _C.LOST,
        (_C.OPEN, _CE.GOODBYE_SENT): _C.CLOSING,
        # From OPEN. Between that and FRESH the peer may be about to refuse,
        # so this side waits as for an answer.
        (_C.OPEN, _CE.UNANSWERED_GOODBYE_SENT): _C.CLOSING_UNANSWERED,
        (_C.OPEN, _CE.GOODBYE_RECEIVED): _C.CLOSED_BY_PEER,
        (_C.OPEN, _CE.TRANSPORT_ENDED): _C.LOST,
        # Goodbyes that cross acknowledge each other:
        # the peer's is the answer to ours, and gets none.
        (_C.CLOSING, _CE.GOODBYE_RECEIVED): _C.CLOSED,
        (_C.CLOSING, _CE.TRANSPORT_ENDED): _C.LOST,
        (_C.CLOSING_UNANSWERED, _CE.GOODBYE_RECEIVED): _C.CLOSED,
        (_C.CLOSING_UNANSWERED, _CE.TRANSPORT_ENDED): _C.LOST,
    }
)

_S, _SE = SendingState, SendingEvent
SENDING_MOVES: Final = Moves[SendingState, SendingEvent](
    {
        (_S.REQUESTED, _SE.ACCEPTED): _S.AWAITING_DEMAND,
        (_S.REQUESTED, _SE.QUEUED): _S.AWAITING_ROOM,
        (_S.REQUESTED, _SE.DEFERRED): _S.UNANNOUNCED,
        (_S.REQUESTED, _SE.REFUSED): _S.ENDED,
        # Demand may come before the decision as well (false start).
        # It is counted in the ledger and moves no state.
        (_S.REQUESTED, _SE.CANCELLED): _S.ENDED,
        (_S.AWAITING_DEMAND, _SE.ATTACHED): _S.LIVE,
        (_S.AWAITING_DEMAND, _SE.REFUSED): _S.ENDED,
        (_S.AWAITING_DEMAND, _SE.FAILED): _S.FAILING,
        (_S.AWAITING_DEMAND, _SE.CANCELLED): _S.ENDED,
        (_S.AWAITING_ROOM, _SE.DEFERRED): _S.UNANNOUNCED,
        (_S.AWAITING_ROOM, _SE.REFUSED): _S.ENDED,
        (_S.AWAITING_ROOM, _SE.FAILED): _S.FAILING,
        (_S.AWAITING_ROOM, _SE.CANCELLED): _S.ENDED,
        (_S.UNANNOUNCED, _SE.ANNOUNCED): _S.LIVE,
        # The publisher raised NotAvailable:
        # the peer must see no difference to a name that does not exist.
        (_S.UNANNOUNCED, _SE.REFUSED): _S.ENDED,
        (_S.UNANNOUNCED, _SE.CANCELLED): _S.ENDED,
        # An idle stream is looked up again at its first demand. By then its name may lead nowhere.
        (_S.LIVE, _SE.REFUSED): _S.ENDED,
        (_S.LIVE, _SE.COMPLETED): _S.FLUSHING,
        # The error of a publisher waits for the elements before it, as a completion does.
        (_S.LIVE, _SE.FAILED): _S.FAILING,
        (_S.LIVE, _SE.CANCELLED): _S.ENDED,
        (_S.FLUSHING, _SE.FLUSHED): _S.ENDED,
        (_S.FLUSHING, _SE.CANCELLED): _S.ENDED,
        (_S.FAILING, _SE.FLUSHED): _S.ENDED,
        (_S.FAILING, _SE.CANCELLED): _S.ENDED,
    }
)

_R, _RE = ReceivingState, ReceivingEvent
RECEIVING_MOVES: Final = Moves[ReceivingState, ReceivingEvent](
    {
        (_R.NEW, _RE.SUBSCRIBED): _R.REQUESTED,
        # The peer never heard of the stream, so there is nothing for it to end.
        (_R.NEW, _RE.CANCELLED): _R.ENDED,
        (_R.NEW, _RE.FAILED): _R.ENDED,
        (_R.REQUESTED, _RE.ACCEPTED): _R.LIVE,
        (_R.REQUESTED, _RE.CANCELLED): _R.CANCELLED,
        # An empty stream may complete, and a refused one fails, without an acceptance before it.
        (_R.REQUESTED, _RE.COMPLETED): _R.ENDED,
        (_R.REQUESTED, _RE.FAILED): _R.ENDED,
        # CANCELLED is final for the stream object.
        # A CancelledStream takes its place in the table until the peer ends it.
        (_R.LIVE, _RE.CANCELLED): _R.CANCELLED,
        (_R.LIVE, _RE.COMPLETED): _R.ENDED,
        (_R.LIVE, _RE.FAILED): _R.ENDED,
    }
)

for _state in ConnectionState:
    _state.is_over = _state in {_C.CLOSED, _C.CLOSED_BY_PEER, _C.LOST}
    _state.is_closing = _state.is_over or _state in {_C.CLOSING, _C.CLOSING_UNANSWERED}
