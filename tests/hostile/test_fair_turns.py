"""Many peers that do the same at the same time do not hold up the run loop:
their work is done in turns.
"""

import socket
from collections.abc import AsyncIterator

import pytest
import trio
from penstock_tck.wire import named_request
from penstock_tck.wire.rsio import cancel, hello, request, request_data, subscribe

from penstock.api import Limits
from penstock.runtime import Server, Service, serve
from penstock.runtime.connection._decoding_turns import decoding_turns
from penstock.session import Session
from tests.hostile._beside_a_canary import wait_until
from tests.hostile._control_canary import ControlCanary
from tests.hostile._loop_passes import HOLD_UP, LoopPasses, watch_passes
from tests.hostile._setup import REGISTRY, service

PEERS = 100


async def _open(server: Server, count: int, *extensions: int) -> list[socket.socket]:
    """Open `count` connections with a plain socket each, and say hello on them."""
    port = server.addresses[0].port
    peers = []
    for _ in range(count):
        peer = socket.create_connection(("127.0.0.1", port))
        peer.setblocking(False)
        peer.send(hello(*extensions))
        peers.append(peer)
    await wait_until(lambda: len(server.peers) == count)
    return peers


def _waiting_service() -> tuple[Service, list[str]]:
    """Return a service with a publisher that waits, and a list of those that have ended."""
    made, ended = service(), list[str]()

    @made.publisher("waits")
    async def waits() -> AsyncIterator[bytes]:
        try:
            await trio.sleep_forever()
            yield b""
        finally:
            ended.append("waits")

    @made.request("held")
    async def held(payload: bytes) -> bytes:
        try:
            await trio.sleep_forever()
        finally:
            ended.append("handler")

    return made, ended


def _is_idle(server: Server) -> bool:
    """Tell whether everything was decoded, and every call that was decoded has begun."""
    connections = tuple(server._connections.running)
    has_more = any(
        connection._link_switcher.current.reader._has_more or connection._parts.runner._queue
        for connection in connections
    )
    return not has_more and not decoding_turns().waiting


BURSTS = {
    "cancels of unknown streams": cancel(5) * 9000,
    "requests on one stream": subscribe("ticks", 1, 1) + request(1, 1) * 1500,
    "subscribes": b"".join(subscribe("one", number, 1) for number in range(200)),
}


@pytest.mark.parametrize("burst", BURSTS.values(), ids=BURSTS)
async def test_the_bursts_of_a_hundred_peers_are_decoded_in_turns(
    burst: bytes, control: ControlCanary, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the default limits. Without a common budget each of the 100 had its own turn in the
    same pass: 200 to 570 ms.
    """

    async def attack(stretch: float) -> None:
        with monkeypatch.context() as patch:
            passes = await _passes_of(burst, patch)
        assert passes.count > 10
        assert passes.longest < HOLD_UP * stretch

    await control.judge(attack)


async def _passes_of(burst: bytes, monkeypatch: pytest.MonkeyPatch) -> LoopPasses:
    """Let 100 peers send `burst` to a server, and return the passes in which it was decoded."""
    received = 0
    receive = Session.receive

    def count(self: Session, data: bytes, now: float, *, most: int) -> bool:
        nonlocal received
        received += len(data)
        return receive(self, data, now, most=most)

    async with serve(
        service(), "rsio+tcp://127.0.0.1:0", registry=REGISTRY, on_violation=lambda error: None
    ) as server:
        peers = await _open(server, PEERS)
        monkeypatch.setattr(Session, "receive", count)
        sent = sum(peer.send(burst) for peer in peers)
        assert sent > PEERS * 1000
        with watch_passes() as passes:
            await wait_until(lambda: received == sent and _is_idle(server))
        for peer in peers:
            peer.close()
    return passes


LEAVING = 20
"""Peers that leave at once. Each has as many streams as it may have."""

STREAMS = 1024
REQUESTS = 7
"""The extension."""

GIB = 2**30
"""The memory budget. All peers have one address, which may have a quarter of it."""

CALL = named_request("held", b"")
OPENINGS = {
    "waits": lambda stream: subscribe("waits", stream, 1),
    "handler": lambda stream: request_data(stream, len(CALL), CALL),
}


@pytest.mark.parametrize("kind", OPENINGS)
async def test_the_publishers_of_peers_that_leave_at_once_end_in_turns(
    kind: str, control: ControlCanary
) -> None:
    """Each of 20,480 tasks wakes and ends. In one pass that took 200 ms."""

    async def attack(stretch: float) -> None:
        made, ended = _waiting_service()
        async with serve(
            made,
            "rsio+tcp://127.0.0.1:0",
            registry=REGISTRY,
            limits=Limits(memory_budget=GIB),
            on_violation=lambda error: None,
        ) as server:
            peers = await _open(server, LEAVING, REQUESTS)
            for peer in peers:
                peer.send(b"".join(map(OPENINGS[kind], range(STREAMS))))
            connections = tuple(server._connections.running)
            await wait_until(
                lambda: sum(each._parts.runner.tasks for each in connections) >= LEAVING * STREAMS
            )
            with watch_passes() as passes:
                for peer in peers:
                    peer.close()
                await wait_until(lambda: not server._connections.running)
            assert ended == [kind] * LEAVING * STREAMS
        assert passes.longest < HOLD_UP * stretch

    await control.judge(attack)
