"""A channel sends, answers and counts.
Each of its bounds ends the connection with its own reason.
"""

import pytest

from penstock.api import Limits, ProtocolError, Role
from penstock.session import Channel, ConnectionState, RetainedBytes
from penstock.session._states import ConnectionEvent
from tests.session._pair import limits_with


def channel(limits: Limits) -> tuple[Channel, list[str]]:
    """Return a channel, and the reasons with which it has failed its connection."""
    reasons: list[str] = []

    def fail(error: ProtocolError) -> None:
        reasons.append(error.reason)

    made = Channel(
        role=Role.SERVER, limits=limits, random=lambda: 0.5, wake=lambda: None, fail=fail
    )
    made.move(ConnectionEvent.HELLO_SENT)
    made.move(ConnectionEvent.HELLO_RECEIVED)
    return made, reasons


def test_a_message_is_queued_while_the_connection_is_open() -> None:
    """An empty message is not queued, and neither is a message after a goodbye."""
    made, reasons = channel(limits_with())
    made.send(b"")
    made.send(b"a")
    made.move(ConnectionEvent.GOODBYE_SENT)
    made.send(b"b")
    assert (bytes(made.outbox.take()), reasons) == (b"a", [])
    assert made.state is ConnectionState.CLOSING


def test_messages_beyond_the_hard_bound_fail_the_connection() -> None:
    """The bound is the high-water mark plus one element plus the answers.
    The unread messages are dropped.
    """
    made, reasons = channel(limits_with(outbound_high=10, max_element=10, outbound_control=10))
    made.send(bytes(30))
    assert reasons == []
    made.send(b"x")
    assert (reasons, made.outbox.waiting) == (["slow-reader"], 0)


@pytest.mark.parametrize("limits", [{"outbound_control_count": 2}, {"outbound_control": 5}])
def test_answers_are_bounded_in_number_and_bytes(limits: dict[str, int]) -> None:
    """Messages that this side sends on its own do not count."""
    made, reasons = channel(limits_with(**limits))
    for _ in range(5):
        made.answer(b"own")
    assert reasons == []
    made.is_receiving = True
    made.answer(b"one")
    made.answer(b"2")
    assert reasons == []
    made.answer(b"three")
    assert reasons == ["slow-reader"]


def test_oddities_cost_tokens_and_then_the_connection() -> None:
    """The reason is the one of the oddity that met an empty budget."""
    made, reasons = channel(limits_with(glitches=3))
    made.count_oddity(2)
    made.count_oddity()
    assert reasons == []
    made.count_oddity(reason="limit:requests")
    assert reasons == ["limit:requests"]


def test_cheap_messages_have_a_rate() -> None:
    """Without a token the message must not be acted on, and the connection fails."""
    made, reasons = channel(limits_with(controls=1))
    assert made.spend_control_token()
    assert not made.spend_control_token()
    assert reasons == ["limit:control"]


def test_a_stream_may_fail_its_connection() -> None:
    """The error reaches the session unchanged."""
    made, reasons = channel(limits_with())
    made.fail_connection(ProtocolError("too many", reason="limit:ids"))
    assert reasons == ["limit:ids"]


def test_streams_without_bytes_are_forgotten_when_they_are_weighed() -> None:
    """The table may still have streams that hold nothing. held_by_streams() removes them."""

    class Holder:
        def __init__(self, weight: int) -> None:
            self.weight = weight

    made, _ = channel(limits_with())
    full = Holder(7)
    made.buffering_streams |= {full: None, Holder(0): None}
    assert made.held_by_streams() == 7
    assert list(made.buffering_streams) == [full]


def test_messages_that_the_peer_does_not_acknowledge_fail_the_connection() -> None:
    """The bound is that of the bytes that are kept for a resumption.
    Exactly as many may be kept.
    """
    made, reasons = channel(limits_with())
    made.outbox.retained = RetainedBytes(50, 100)
    made.send(bytes(100))
    made.outbox.take()
    made.send(b"x")
    assert reasons == []
    made.outbox.take()
    made.send(b"x")
    assert reasons == ["slow-reader"]
