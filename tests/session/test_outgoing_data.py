"""Request data that is too long for one message:
parts in turn, and nothing held for a request that has ended.
"""

from penstock.api import Limits, Role
from penstock.session import Channel, OutgoingData
from penstock.session._outgoing_data import LARGEST_PART


def outgoing(limits: Limits) -> tuple[Channel, OutgoingData]:
    """Return a channel, and the data of its requests; the header of a part is two bytes."""
    channel = Channel(
        role=Role.CLIENT, limits=limits, random=lambda: 0.5, wake=lambda: None, fail=lambda _: None
    )
    return channel, OutgoingData(channel, lambda stream_id, size: bytes([stream_id, size % 251]))


def test_parts_of_two_requests_are_written_in_turn() -> None:
    """Each of `split_outbound_at` bytes, with a header."""
    channel, data = outgoing(Limits(split_outbound_at=1024))
    data.add(1, b"a" * 2048)
    data.add(2, b"b" * 1030)
    assert channel.outbox.large == 3078
    assert channel.outbox.take() == (
        bytes([1, 1024 % 251]) + b"a" * 1024 + bytes([2, 1024 % 251]) + b"b" * 1024
        + bytes([1, 1024 % 251]) + b"a" * 1024 + bytes([2, 6]) + b"b" * 6
    )  # fmt: skip
    assert channel.outbox.large == 0
    assert not data.senders


def test_a_part_is_never_longer_than_any_peer_takes() -> None:
    """One request alone may have data, with large parts."""
    channel, data = outgoing(Limits(split_outbound_at=100_000, outbound_high=1_000_000))
    data.add(1, bytes(100_000))
    assert len(channel.outbox.take()) == 100_000 + 2 * 2
    assert LARGEST_PART + 10 < 65_536


def test_nothing_is_held_for_a_request_that_has_ended() -> None:
    """The rest of the data is dropped, whether its first part was sent or not."""
    channel, data = outgoing(Limits(split_outbound_at=1024, outbound_high=1024))
    data.add(1, bytes(2048))
    data.add(2, bytes(2048))
    channel.outbox.take()
    for stream_id in (1, 2, 3):
        data.forget(stream_id)
    assert channel.outbox.large == 0
    assert channel.outbox.take() == b""
    assert not data.senders


def test_the_memory_budget_hears_of_the_data_when_it_is_added() -> None:
    """Its weight is the whole data until the last part is written."""
    channel, data = outgoing(Limits(split_outbound_at=1024, outbound_high=1024))
    heard: list[int] = []
    channel.on_buffered = heard.append
    data.add(1, bytes(2048))
    assert (heard, channel.held_by_streams()) == ([2048], 2048)
    channel.outbox.take()
    assert channel.held_by_streams() == 2048
    channel.outbox.take()
    assert (heard, channel.held_by_streams()) == ([2048], 0)
