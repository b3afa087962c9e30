"""The RS.io client of the checks:
it records all messages, and judges only when a check asks for it.
"""

import pytest
import trio.testing
from penstock_tck.wire import Target
from penstock_tck.wire import rsio as io
from penstock_tck.wire._rsio_peer import RsioPeer
from penstock_tck.wire._verdict import Failed

from penstock.spi import ByteConnection, PeerIdentity, TransportOptions


def _peer(data: bytes = b"") -> RsioPeer:
    ours, _ = trio.testing.memory_stream_pair()
    peer = RsioPeer(
        ByteConnection(ours, peer=PeerIdentity(address="test"), options=TransportOptions()),
        Target(),
    )
    peer.on_data(data)
    return peer


async def test_elements_are_unpacked_and_joined() -> None:
    """Elements of a fixed size, packed elements, elements in alternating parts,
    and a whole element.
    """
    fixed = (
        io.on_subscribe(1, 2)
        + io.numbers(io.ON_NEXT, 1)
        + b"aa"
        + io.numbers(io.ON_NEXT_PACKED, 1, 2)
        + b"bbcc"
    )
    mixed = (
        io.part(2, 0, b"a")
        + io.part(2, 1, b"b")
        + io.part(2, 1, b"B", last=True)
        + io.on_next(2, b"x")
        + io.part(2, 0, b"A", last=True)
    )
    peer = _peer(fixed + mixed)
    assert peer.elements(1) == [b"aa", b"bb", b"cc"]
    assert peer.elements(2) == [b"bB", b"x", b"aA"]


async def test_the_last_messages_are_described() -> None:
    """The number of messages before them is also shown."""
    peer = _peer(b"".join(io.on_complete(stream) for stream in range(8)))
    assert peer.describe_received().startswith("arrived: 2 more, then onComplete 2, onComplete 3,")
    assert peer.ended(3) is peer.received[3]


async def test_bytes_that_are_not_a_message_fail_the_check() -> None:
    """The check fails at once, because no later message can be decoded."""
    with pytest.raises(Failed, match="type 0x7f, which does not exist"):
        _peer(b"\x7f")


async def test_a_goodbye_that_does_not_come_is_named(autojump_clock) -> None:
    """The failure comes after `patience` seconds."""
    with pytest.raises(
        Failed,
        match=r"a goodbye, because a test waits, did not come within 5\.0 s; arrived: nothing",
    ):
        await _peer().expect_refused("a test waits")
