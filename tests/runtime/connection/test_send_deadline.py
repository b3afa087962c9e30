"""Sending with a deadline: in pieces to a peer that may be slow, whole to a fast one."""

from typing import Any

import pytest
import trio

from penstock.api import Limits
from penstock.runtime.connection._writer import DeadlineSender
from penstock.spi import MessageConnection, PeerIdentity


class Slow(MessageConnection):
    """A peer that takes `rate` bytes a second; the rest waits."""

    framed = False  # type: ignore[misc]  # a stream, for the purpose

    def __init__(self, rate: float) -> None:
        super().__init__(peer=PeerIdentity(address="test"))
        self.rate = rate
        self.sizes: list[int] = []
        self.taken = bytearray()

    async def send(self, data: Any, /) -> None:
        self.sizes.append(len(data))
        await trio.sleep(len(data) / self.rate)
        self.taken += data

    async def receive(self) -> None: ...

    async def aclose(self) -> None: ...

    async def abort(self) -> None: ...


LIMITS = Limits(write_stall=2.0, min_drain=100)
DATA = bytearray(range(250)) * 4


async def test_a_slow_peer_that_takes_enough_is_kept(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """A thousand bytes at sixty a second:
    each hundred in time, all of them in eight times the deadline of one send.
    """
    slow = Slow(60)
    await DeadlineSender(slow, LIMITS).send(DATA)
    assert slow.taken == DATA
    assert trio.current_time() > 8 * LIMITS.write_stall


async def test_a_peer_that_takes_a_byte_now_and_then_is_given_up(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Forty a second are less than a hundred in two seconds; it is noticed after those two."""
    began = trio.current_time()
    with pytest.raises(trio.TooSlowError):
        await DeadlineSender(Slow(40), LIMITS).send(DATA)
    assert trio.current_time() - began == pytest.approx(2.0)


async def test_a_fast_peer_gets_everything_in_one_send(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """After a first send in pieces; when it has become slow, in pieces again."""
    peer = Slow(1e6)
    patience = DeadlineSender(peer, LIMITS)
    for _ in range(2):
        await patience.send(DATA)
    assert peer.sizes == [100] * 10 + [1000]
    peer.rate = 600
    await patience.send(DATA)
    peer.sizes.clear()
    await patience.send(DATA)
    assert peer.sizes == [100] * 10


async def test_small_sends_prove_nothing(autojump_clock: trio.testing.MockClock) -> None:
    """They fit into the buffers of the system."""
    peer = Slow(1e6)
    patience = DeadlineSender(peer, LIMITS)
    for _ in range(5):
        await patience.send(bytearray(100))
    await patience.send(DATA)
    assert peer.sizes == [100] * 15


async def test_a_message_is_never_cut(autojump_clock: trio.testing.MockClock) -> None:
    """A framed transport carries whole messages."""
    peer = Slow(1e6)
    peer.framed = True  # type: ignore[misc]  # as a transport of messages says
    await DeadlineSender(peer, LIMITS).send(DATA)
    assert peer.sizes == [1000]
