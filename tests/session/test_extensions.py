"""The extensions of a connection: opened when both sides have them, fed, and kept from doing harm."""

from typing import Any

import pytest

from penstock.api import ActiveExtension, ConnectionLost, ExtensionLink, UsageError
from tests.session._pair import Pair


class Echo:
    """An extension that notes what it gets."""

    id = 200
    name = "echo"
    codes = frozenset({0x60})

    def __init__(self, *, raises: bool = False) -> None:
        self.raises = raises
        self.links: list[ExtensionLink] = []
        self.got: list[bytes] = []

    def open(self, link: ExtensionLink, now: float, /) -> ActiveExtension:
        self.links.append(link)
        return self

    def received(self, type: int, body: bytes, now: float, /) -> None:  # noqa: A002  # the wire's word
        if self.raises:
            raise RuntimeError("broken")
        self.got.append(body)

    def heard(self, now: float, /) -> None:
        pass

    def tick(self, now: float, /) -> float | None:
        return None


def talking(**theirs: Any) -> tuple[Pair, Echo, Echo]:
    here, there = Echo(), Echo(**theirs)
    pair = Pair(extensions=[here], server_extensions=[there])
    pair.settle()
    return pair, here, there


def test_an_extension_of_both_sides_is_opened_once_and_its_messages_arrive() -> None:
    """It sends through its link."""
    pair, here, there = talking()
    here.links[0].send(0x60, b"hello")
    pair.settle()
    assert len(here.links) == len(there.links) == 1
    assert there.got == [b"hello"]


def test_an_extension_sends_no_message_that_is_not_its_own() -> None:
    """A code of somebody else's is a mistake of its author's."""
    _, here, _ = talking()
    with pytest.raises(UsageError, match="none of its codes"):
        here.links[0].send(0x61, b"")


def test_an_extension_that_raises_ends_its_connection_and_nothing_else() -> None:
    """The peer is told no more than that."""
    pair, here, _ = talking(raises=True)
    here.links[0].send(0x60, b"hello")
    pair.settle()
    assert pair.server.session.state.is_over
    (lost,) = pair.client.ended
    assert isinstance(lost, ConnectionLost)
    assert "broken" not in str(lost)
    assert "internal" in str(lost)


def test_an_extension_that_ends_the_connection_says_which_and_why() -> None:
    """The peer gets the token, and whoever reads here gets words for it, if there are any."""
    pair, here, _ = talking()
    subscriber = pair.subscribe("s")
    here.links[0].break_off("keepalive")
    pair.settle()
    assert str(subscriber.ends[0]).startswith("the extension 'echo' ended the connection: the peer gave no sign of life")
    assert "'keepalive'" in str(pair.server.ended[0])
