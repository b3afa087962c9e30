"""A raw connection: every wait has its end, and says in words what did not come."""

import pytest
import trio
from penstock_tck.wire import Target, _raw_connection
from penstock_tck.wire._rs_peer import RsPeer
from penstock_tck.wire._verdict import Failed

from penstock.plugins import Connection, TransportOptions, parse_url
from tck.tests.wire._scripted_target import REGISTRY

TARGET = Target()


async def _pair(nursery: trio.Nursery) -> tuple[RsPeer, Connection]:
    transport, url = REGISTRY.transport("memory"), parse_url("memory://line")
    listener = await transport.listen(url, options=TransportOptions(), nursery=nursery)
    ours = await transport.connect(url, options=TransportOptions(), nursery=nursery)
    theirs = await listener.accept()
    await listener.aclose()
    return RsPeer(ours, TARGET), theirs


async def test_who_does_not_read_is_told_after_a_while(autojump_clock) -> None:
    """A send that nobody takes ends in words."""
    async with trio.open_nursery() as nursery:
        peer, _ = await _pair(nursery)
        with pytest.raises(Failed, match=r"did not read what it was sent for 5.0 s"):
            await peer.send(bytes(1 << 20))
        assert trio.current_time() >= TARGET.patience


async def test_who_does_not_close_is_told_after_a_while(autojump_clock) -> None:
    """The reason for which it should have is in the words."""
    async with trio.open_nursery() as nursery:
        peer, _ = await _pair(nursery)
        with pytest.raises(Failed, match=r"nonsense was sent, and the target kept the connection open for 5.0 s; arrived: nothing"):
            await peer.wait_closed("nonsense was sent")


async def test_silence_is_waited_for_and_an_end_is_one(autojump_clock) -> None:
    """Until nothing comes for so long, or the target has ended."""
    async with trio.open_nursery() as nursery:
        peer, theirs = await _pair(nursery)
        await peer.settle()
        assert trio.current_time() == pytest.approx(TARGET.quiet)
        await theirs.aclose()
        await peer.settle()
        assert peer.ending == "closed"
        await peer.send(b"nobody hears this")


async def test_who_does_not_stop_is_cut_off(autojump_clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bound on what is taken in, whatever it is."""
    monkeypatch.setattr(_raw_connection, "MAX_RECEIVED", 100)
    async with trio.open_nursery() as nursery:
        peer, theirs = await _pair(nursery)
        await theirs.send(bytes([0, 0, 1, 0]) + bytes(197))
        with pytest.raises(Failed, match="and did not stop"):
            await peer.settle()
