"""The ReactiveSocket client of the checks:
it records all frames, and judges only when a check asks for it.
"""

import pytest
import trio
import trio.testing
from penstock_tck.wire import Target
from penstock_tck.wire import reactivesocket as rs
from penstock_tck.wire._rs_peer import RsPeer
from penstock_tck.wire._verdict import Failed

from penstock.spi import ByteConnection, PeerIdentity, TransportOptions


def _peer(*frames: bytes) -> RsPeer:
    ours, _ = trio.testing.memory_stream_pair()
    peer = RsPeer(
        ByteConnection(ours, peer=PeerIdentity(address="test"), options=TransportOptions()),
        Target(),
    )
    for frame in frames:
        peer.on_data(rs.with_length(frame))
    return peer


async def test_elements_are_joined_from_fragments() -> None:
    """A whole element, one in fragments, one without B and E, and a COMPLETE,
    which is not an element.
    """
    peer = _peer(
        rs.encode_frame(rs.RESPONSE, 1, b"whole", flags=rs.B | rs.E),
        rs.encode_frame(rs.RESPONSE, 1, b"in ", flags=rs.B),
        rs.encode_frame(rs.RESPONSE, 2, b"other", flags=rs.B | rs.E),
        rs.encode_frame(rs.RESPONSE, 1, b"par", flags=0),
        rs.encode_frame(rs.RESPONSE, 1, b"ts", flags=rs.E),
        rs.encode_frame(rs.RESPONSE, 1, b"bare", flags=0),
        rs.encode_frame(rs.RESPONSE, 1, b"", flags=rs.C),
    )
    assert peer.elements(1) == [b"whole", b"in parts", b"bare"]
    assert peer.completed(1)
    assert not peer.completed(2)


async def test_the_last_frames_are_described() -> None:
    """The number of frames before them is also shown."""
    peer = _peer(*[rs.encode_frame(rs.CANCEL, stream) for stream in range(10)])
    assert peer.describe_received() == (
        "arrived: 4 more, then CANCEL on 4, CANCEL on 5, CANCEL on 6, CANCEL on 7, CANCEL on "
        "8, CANCEL on 9"
    )


async def test_bytes_that_are_not_a_frame_fail_the_check() -> None:
    """The check fails at once, because no later frame can be decoded."""
    with pytest.raises(Failed, match="the length 3"):
        _peer().on_data(bytes([0, 0, 0, 3]))


async def test_a_message_that_does_not_come_is_named(autojump_clock) -> None:
    """The failure comes after `patience` seconds."""
    with pytest.raises(
        Failed, match=r"the expected frame did not come within 5.0 s; arrived: nothing"
    ):
        await _peer().wait_until(lambda: False, "the expected frame")
