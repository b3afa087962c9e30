"""The extensions of a connection:
opened when both sides have them, fed, and kept from doing harm.
"""

from typing import Any

import pytest

from penstock.api import (
    ActiveExtension,
    ConnectionLost,
    ExtensionLink,
    ProtocolError,
    UsageError,
)
from penstock.session import ConnectionState
from tests.session._pair import Pair, limits_with


class Echo:
    """An extension that notes the messages it receives."""

    id = 200
    name = "echo"
    codes = frozenset({0x60})

    def __init__(self, *, raises: bool = False) -> None:
        self.raises = raises
        self.links: list[ExtensionLink] = []
        self.bodies: list[bytes] = []

    def open(self, link: ExtensionLink, now: float, /) -> ActiveExtension:
        self.links.append(link)
        return self

    def received(self, type: int, body: bytes, now: float, /) -> None:  # noqa: A002  # the wire's word
        if self.raises:
            raise RuntimeError("broken")
        self.bodies.append(body)


def echoing(**server_options: Any) -> tuple[Pair, Echo, Echo]:
    here, there = Echo(), Echo(**server_options)
    pair = Pair(extensions=[here], server_extensions=[there])
    pair.settle()
    return pair, here, there


def test_an_extension_of_both_sides_is_opened_once_and_its_messages_arrive() -> None:
    """An extension sends through its link."""
    pair, here, there = echoing()
    here.links[0].send(0x60, b"hello")
    pair.settle()
    assert len(here.links) == len(there.links) == 1
    assert there.bodies == [b"hello"]


def test_an_extension_may_refuse_a_message_for_its_length_before_the_body() -> None:
    """Only if the body has not arrived as a whole; one without the method is never asked."""

    class Picky(Echo):
        def check_length(self, type: int, length: int, /) -> None:  # noqa: A002  # the wire's word
            if length > 10:
                self.links[0].break_off("limit:frame")

    picky = Picky()
    for there, state in ((picky, ConnectionState.CLOSING), (Echo(), ConnectionState.OPEN)):
        pair = Pair(extensions=[Echo()], server_extensions=[there])
        pair.settle()
        pair.server.session.receive(bytes([0x60, 10]) + bytes(9), 0.0)
        assert pair.server.session.state is ConnectionState.OPEN
        pair.server.session.receive(bytes([0, 0x60, 11]), 0.0)
        assert pair.server.session.state is state
    assert picky.bodies == [bytes(10)]


def test_an_extension_cannot_send_a_code_of_another_extension() -> None:
    """It raises UsageError, because the extension's author must act."""
    _, here, _ = echoing()
    with pytest.raises(UsageError, match="none of its codes"):
        here.links[0].send(0x61, b"")


def test_an_extension_that_raises_ends_its_connection_and_nothing_else() -> None:
    """The peer gets the reason `internal`, without the exception's text.
    This side reports the exception, once.
    """
    pair, here, _ = echoing(raises=True)
    here.links[0].send(0x60, b"hello")
    here.links[0].send(0x60, b"again")
    pair.settle()
    (warning,) = pair.server.warnings
    assert "broken" in str(warning)
    assert warning.__cause__ is not None
    assert pair.server.session.state.is_over
    (lost,) = pair.client.ended
    assert isinstance(lost, ConnectionLost)
    assert "broken" not in str(lost)
    assert "internal" in str(lost)


def test_an_end_by_an_extension_names_the_extension_and_the_reason() -> None:
    """The peer gets the token. The error on this side explains the token,
    if the table of reasons has it.
    """
    pair, here, _ = echoing()
    subscriber = pair.subscribe("s")
    here.links[0].break_off("keepalive")
    pair.settle()
    assert str(subscriber.ends[0]).startswith(
        "the extension 'echo' ended the connection: the peer gave no sign of life"
    )
    assert "'keepalive'" in str(pair.server.ended[0])


def test_an_extension_is_called_for_bytes_and_when_it_is_due() -> None:
    """Both methods are optional. It is first asked when the connection is open."""
    calls: list[tuple[str, float]] = []

    class Watching(Echo):
        def heard(self, now: float, /) -> None:
            calls.append(("heard", now))

        def tick(self, now: float, /) -> float | None:
            calls.append(("tick", now))
            return 9.0

    there, here = Watching(), Echo()
    pair = Pair(extensions=[here], server_extensions=[there])
    pair.settle()
    session = pair.server.session
    calls.clear()
    assert session.tick(1.0) == 9.0
    here.links[0].send(0x60, b"hello")
    pair.now = 2.0
    pair.settle()
    assert there.links[0].heard_at == 2.0
    session.tick(3.0)
    there.links[0].wake_at(5.0)
    there.links[0].wake_at(7.0)
    assert session.tick(4.0) == 5.0
    session.tick(5.0)
    session.tick(6.0)
    assert calls == [("tick", 1.0), ("heard", 2.0), ("tick", 5.0)]
    assert there.bodies == [b"hello"]


def test_an_extension_that_finds_a_fault_when_it_is_due_ends_the_connection() -> None:
    """As if it had found it in a message."""

    class Strict(Echo):
        def tick(self, now: float, /) -> float | None:
            raise ProtocolError("too slow", reason="limit:echo")

    pair = Pair(extensions=[Echo()], server_extensions=[Strict()])
    pair.settle()
    pair.server.session.tick(1.0)
    assert pair.server.session.close_reason[0] == "limit:echo"


@pytest.mark.parametrize(
    ("member", "is_bounded"),
    [("none", True), ("goes_with_streams", False), ("is_uncounted", False)],
)
def test_the_messages_of_an_extension_have_a_rate(member: str, is_bounded: bool) -> None:
    """Not those that go with streams, which have other bounds, and not those
    that acknowledge bytes of this side.
    """
    here, there = Echo(), Echo()
    setattr(there, member, True)
    pair = Pair(
        extensions=[here],
        server_extensions=[there],
        limits=limits_with(control_burst=2, control_rate=1e-9),
    )
    pair.settle()
    for _ in range(3):
        here.links[0].send(0x60, b"")
    pair.settle()
    assert pair.server.session.state.is_over is is_bounded
    assert len(there.bodies) == (2 if is_bounded else 3)
