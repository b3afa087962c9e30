"""One connection of a client without I/O, driven with bytes and times."""

from collections.abc import Iterator

import pytest
from penstock_tck.wire import rsio

from penstock.api import ConnectionLost, Limits, Rejected
from penstock.client import AnswerBuffer
from penstock.reader import StreamBuffer
from tests.client._settings import HELLO, endpoint

FOREVER = b"\xff" * 8 + b"\x7f"


def test_the_first_bytes_are_the_hello() -> None:
    """They wait when the endpoint is made, and list the extensions of penstock."""
    made = endpoint(extensions=())
    assert not made.has_output
    assert (made.opened_at, made.is_over, made.reason) == (None, False, None)


def test_the_hello_of_the_peer_opens() -> None:
    """The owner is told, and the time is that of the bytes."""
    made, told = endpoint(), []
    made.on_change = lambda: told.append(made.opened_at)
    assert not made.receive(HELLO, 3.0)
    assert told == [3.0]


def test_most_messages_of_a_chunk_are_left_for_the_next_call() -> None:
    """The owner decides how long it decodes at a time."""
    made, buffer = endpoint(), StreamBuffer()
    made.subscribe("a", buffer)
    data = HELLO + rsio.on_subscribe(0) + rsio.on_next(0, b"a") * 2
    rounds = 0
    more = made.receive(data, 0.0, most=1)
    while more:
        rounds += 1
        more = made.receive(b"", 0.0, most=1)
    assert rounds >= 2
    assert buffer._take_batch() == [b"a", b"a"]


def test_a_goodbye_that_is_not_answered_ends_at_its_deadline() -> None:
    """`Limits.goodbye_timeout` after the first tick, and no earlier."""
    made = endpoint(limits=Limits(goodbye_timeout=2.0))
    made.receive(HELLO, 0.0)
    made.close()
    assert made.is_closing
    assert made.tick(1.0) == 3.0
    assert not made.is_over
    assert made.tick(3.0) is None
    assert made.is_over
    assert isinstance(made.reason, ConnectionLost)


def test_a_deadline_that_comes_nearer_is_told() -> None:
    """After the goodbye another deadline counts: an owner that waits for the last one ticks anew.
    A connection that is released tells nothing.
    """
    made = endpoint(limits=Limits(keepalive=20.0, goodbye_timeout=2.0))
    made.receive(HELLO, 0.0)
    told: list[float] = []
    made.on_earlier = told.append
    assert made.tick(0.0) is not None
    assert told == []
    made.close()
    assert told
    assert max(told) < made.tick(1.0) == 3.0  # type: ignore[operator]  # it is due
    told.clear()
    made.release()
    assert told == []


def test_bytes_behind_the_goodbye_are_bounded() -> None:
    """A peer that goes on sending is not waited for."""
    made = endpoint()
    made.receive(HELLO, 0.0)
    made.close()
    made.receive(bytes(1 << 20), 0.0)
    assert not made.has_left
    made.receive(b"x", 0.0)
    assert made.has_left


@pytest.mark.parametrize(
    ("data", "cause", "match"),
    [
        (b"", None, "before the peer answered"),
        (HELLO, None, "without a goodbye"),
        (HELLO, OSError(104, "reset"), "The system says: .*reset"),
    ],
)
def test_the_end_of_the_transport_is_connection_lost(
    data: bytes, cause: OSError | None, match: str
) -> None:
    """The text says how far the connection had come, and has the text of the system.
    A second end changes nothing.
    """
    made, answer = endpoint(), AnswerBuffer()
    made.receive(data, 0.0)
    made.subscribe("a", answer)
    made.end_of_input(cause)
    made.end_of_input(OSError(1, "later"))
    with pytest.raises(ConnectionLost, match=match):
        answer.take()
    with pytest.raises(ConnectionLost, match=match):
        made.raise_reason()


def test_a_peer_that_takes_too_little_is_given_up() -> None:
    """`Limits.min_drain` bytes within `Limits.write_stall` seconds are enough; fewer are not."""
    made = endpoint(limits=Limits(write_stall=10.0, min_drain=100))
    assert made.check_stall(0, 0, 0.0) is None
    assert made.check_stall(0, 500, 1.0) == 11.0
    assert made.check_stall(99, 401, 10.9) == 11.0
    assert made.check_stall(100, 400, 10.95) == 20.95
    assert made.check_stall(100, 400, 20.95) is None
    assert "next to nothing" in str(made.reason)


def test_a_peer_that_catches_up_starts_anew() -> None:
    """When nothing waits the watch is over."""
    made = endpoint(limits=Limits(write_stall=10.0))
    assert made.check_stall(0, 10, 0.0) == 10.0
    assert made.check_stall(10, 0, 9.0) is None
    assert made.check_stall(10, 10, 11.0) == 21.0


def test_the_owner_is_woken_once_for_what_is_queued() -> None:
    """And not again until the bytes were taken."""
    made, woken = endpoint(), []
    made.receive(HELLO, 0.0)
    made.wake = lambda: woken.append(made.has_room)
    made.subscribe("a", StreamBuffer())
    made.subscribe("b", StreamBuffer())
    assert woken == [True]
    assert b"a" in made.take()


def test_publishers_run_when_the_owner_lets_them() -> None:
    """Nothing of the program runs while bytes are received."""
    ran: list[str] = []

    def numbers() -> Iterator[bytes]:
        ran.append("begun")
        yield b"one"

    made = endpoint(publishers={"n": numbers}, extensions=())
    made.receive(HELLO + bytes.fromhex("10016e00") + FOREVER, 0.0)
    assert made.has_work
    assert ran == []
    made.run_publishers(lambda: 0.0)
    assert ran == ["begun"]
    assert b"one" in made.take()
    made.run_publishers(lambda: 0.0)
    assert not made.has_work


def test_a_name_that_is_not_published_is_refused() -> None:
    """In the words of every server; a request with data is refused as well."""
    made = endpoint()
    made.receive(HELLO + bytes.fromhex("10016e00") + FOREVER, 0.0)
    assert b"no such publisher" in made.take()


def test_the_cleanup_of_a_publisher_that_fails_is_reported() -> None:
    """The hook gets it, when the publisher runs and when the endpoint is released."""
    heard: list[Exception] = []

    def stubborn() -> Iterator[bytes]:
        try:
            while True:
                yield b"x"
        finally:
            raise ValueError("cleanup")

    made = endpoint(publishers={"n": stubborn}, on_violation=heard.append)
    made.receive(HELLO + bytes.fromhex("10016e0001"), 0.0)
    made.run_publishers(lambda: 0.0)
    made.receive(bytes.fromhex("1200"), 0.0)
    made.run_publishers(lambda: 0.0)
    assert [str(error) for error in heard] == ["cleanup"]
    made.receive(bytes.fromhex("10016e0101"), 0.0)
    made.run_publishers(lambda: 0.0)
    made.receive(bytes.fromhex("1201"), 0.0)
    made.release()
    made.release()
    assert [str(error) for error in heard] == ["cleanup", "cleanup"]


def test_a_refusal_of_the_peer_is_the_reason() -> None:
    """A server of another version."""
    made = endpoint()
    made.receive(bytes.fromhex("020900"), 0.0)
    made.end_of_input()
    with pytest.raises(Rejected, match="version"):
        made.raise_reason()


def test_the_principal_is_part_of_the_identity() -> None:
    """An extension that recognises the peer sets it."""
    made = endpoint()
    made.recognise("alice")
    assert made.identify().principal == "alice"
