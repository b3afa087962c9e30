"""A raw connection: every wait has a deadline, and the failure names the expected message."""

import pytest
import trio
from penstock_tck.wire import Target, _raw_connection
from penstock_tck.wire._rs_peer import RsPeer
from penstock_tck.wire._verdict import Failed

from penstock.spi import Connection, TransportOptions, parse_url
from tck.tests.wire._scripted_target import REGISTRY

TARGET = Target()


async def _pair(nursery: trio.Nursery) -> tuple[RsPeer, Connection]:
    transport, url = REGISTRY.transport("memory"), parse_url("memory://line")
    listener = await transport.listen(url, options=TransportOptions(), nursery=nursery)
    ours = await transport.connect(url, options=TransportOptions(), nursery=nursery)
    theirs = await listener.accept()
    await listener.aclose()
    return RsPeer(ours, TARGET), theirs


async def test_send_fails_if_the_target_does_not_read(autojump_clock) -> None:
    """The failure comes after `patience` seconds."""
    async with trio.open_nursery() as nursery:
        peer, _ = await _pair(nursery)
        with pytest.raises(Failed, match=r"did not read the bytes that were sent to it for 5.0 s"):
            await peer.send(bytes(1 << 20))
        assert trio.current_time() >= TARGET.patience


async def test_wait_closed_fails_if_the_target_does_not_close(autojump_clock) -> None:
    """The failure names the reason for which the target had to close the connection."""
    async with trio.open_nursery() as nursery:
        peer, _ = await _pair(nursery)
        with pytest.raises(
            Failed,
            match=r"nonsense was sent, and the target kept the connection open for 5.0 s; arrived: nothing",
        ):
            await peer.wait_closed("nonsense was sent")


async def test_settle_returns_after_silence_or_at_the_end(autojump_clock) -> None:
    """It waits `quiet` seconds without input, or until the target has closed the connection."""
    async with trio.open_nursery() as nursery:
        peer, theirs = await _pair(nursery)
        await peer.settle()
        assert trio.current_time() == pytest.approx(TARGET.quiet)
        await theirs.aclose()
        await peer.settle()
        assert peer.ending == "closed"
        await peer.send(b"sent after the end")  # returns normally


async def test_more_than_max_received_bytes_fail_the_check(
    autojump_clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bound is checked with each read."""
    monkeypatch.setattr(_raw_connection, "MAX_RECEIVED", 100)
    async with trio.open_nursery() as nursery:
        peer, theirs = await _pair(nursery)
        await theirs.send(bytes([0, 0, 1, 0]) + bytes(197))
        with pytest.raises(Failed, match="and did not stop"):
            await peer.settle()
