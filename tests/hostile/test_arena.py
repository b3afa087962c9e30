"""What judges attacks can be failed: a canary that is kept waiting says so, and what is left behind is found."""

import os
from time import monotonic

import pytest
import trio

from penstock.runtime import Server
from tests.hostile._arena import GAP, Certificates, beside_a_canary
from tests.hostile._attacker import open_stream
from tests.hostile._own_time import OwnTime
from tests.hostile._row import SCALED


async def test_a_loop_that_is_held_up_shows_as_a_gap(files: Certificates) -> None:
    """A tenth of a second of work without a turn for anybody else is too much."""

    async def act(server: Server, clock: OwnTime) -> None:
        ends = clock.now() + 1.5 * GAP
        while clock.now() < ends:
            pass
        await trio.lowlevel.checkpoint()

    assert (await beside_a_canary(SCALED, "tcp", files, act)).gap > GAP


async def test_what_is_left_behind_is_found(files: Certificates) -> None:
    """A socket, say."""
    kept: list[trio.abc.Stream] = []

    async def act(server: Server, clock: OwnTime) -> None:
        listener = (await trio.open_tcp_listeners(0, host="127.0.0.1"))[0]
        kept.append(await open_stream("tcp://{}:{}".format(*listener.socket.getsockname()), files.authority))
        await listener.aclose()

    left = (await beside_a_canary(SCALED, "tcp", files, act)).left
    await kept.pop().aclose()
    assert left["trio.SocketStream"] == left["open files"] == 1


def test_time_that_the_system_took_is_not_our_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half a second in the queue for a processor is half a second less; without a count it is the clock on the wall."""
    clock = OwnTime()
    try:
        monkeypatch.setattr(clock, "_file", 0)
        monkeypatch.setattr(os, "pread", lambda *_: b"1000000 500000000 3\n")
        assert monotonic() - 0.5 <= clock.now() <= monotonic() - 0.5
        monkeypatch.setattr(clock, "_file", None)
        assert monotonic() <= clock.now() <= monotonic()
    finally:
        monkeypatch.undo()
        clock.close()
