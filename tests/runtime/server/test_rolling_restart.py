"""A rolling restart over real sockets:
clients with `Reconnect` under load, and one server after another, which a switch connects them to.
"""

from collections.abc import AsyncIterator
from contextlib import suppress

import pytest
import trio

import penstock
from penstock.api import Limits

RESTARTS = 3
ROUNDS = 5
"""Rounds that each client makes with a server before that one is drained."""
ELEMENTS = 200
POLICY = penstock.Reconnect(first=0.01, most=0.05)


class Switch:
    """Carries each connection to the server that is in charge when it comes."""

    def __init__(self) -> None:
        self.port = 0

    async def serve(self, *, task_status: trio.TaskStatus[int]) -> None:
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        task_status.started(listener.socket.getsockname()[1])
        await trio.serve_listeners(self._carry, [listener])

    async def _carry(self, client: trio.SocketStream) -> None:
        while True:
            # That server has just closed its listener: another one is in charge.
            with suppress(OSError):
                server = await trio.open_tcp_stream("127.0.0.1", self.port)
                break
        async with client, server, trio.open_nursery() as nursery:
            nursery.start_soon(self._copy, client, server)
            nursery.start_soon(self._copy, server, client)

    async def _copy(self, source: trio.SocketStream, sink: trio.SocketStream) -> None:
        with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            async for data in source:
                await sink.send_all(data)
            await sink.send_eof()


class Load:
    """Clients that count what they get. An error at one of them fails the test."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.server = ""
        self.rounds: dict[str, int] = {}
        """Finished rounds of each client with the server in charge."""
        self.elements = 0
        self.is_over = False
        self.running = 0
        self._progress = trio.Event()

    async def ask(self, name: str) -> None:
        """Ask and subscribe over one connection."""
        self.running += 1
        async with penstock.connect(self.url, reconnect=POLICY) as peer:
            while not self.is_over:
                answer = await peer.request("who", type=str)
                async with peer.subscribe(f"count/{ELEMENTS}") as stream:
                    self._check([element async for element in stream])
                self._finish(name, answer)
        self._leave()

    async def subscribe(self, name: str) -> None:
        """Make a connection for each stream."""
        self.running += 1
        while not self.is_over:
            async with penstock.subscribe(
                f"{self.url}/count/{ELEMENTS}", reconnect=POLICY
            ) as stream:
                self._check([element async for element in stream])
                assert stream.restarts == 0
            self._finish(name, self.server)
        self._leave()

    async def end(self) -> None:
        """Let each client finish its round, and wait for it."""
        self.is_over = True
        while self.running:
            self._progress = trio.Event()
            await self._progress.wait()

    async def wait_rounds(self, clients: int) -> None:
        while sum(rounds >= ROUNDS for rounds in self.rounds.values()) < clients:
            self._progress = trio.Event()
            await self._progress.wait()

    def _leave(self) -> None:
        self.running -= 1
        self._progress.set()

    def _check(self, elements: list[bytes]) -> None:
        assert elements == [b"%d" % number for number in range(ELEMENTS)]
        self.elements += len(elements)

    def _finish(self, name: str, server: str) -> None:
        if server == self.server:
            self.rounds[name] = self.rounds.get(name, 0) + 1
        self._progress.set()


def service_of(name: str) -> penstock.Service:
    service = penstock.Service()

    @service.publisher("count/{most}")
    async def count(most: int) -> AsyncIterator[bytes]:
        for number in range(most):
            yield b"%d" % number
            if number % 20 == 0:
                await trio.lowlevel.checkpoint()

    @service.request("who")
    async def who() -> str:
        return name

    return service


async def run_server(name: str, leave: trio.Event, *, task_status: trio.TaskStatus[int]) -> None:
    """Serve until `leave` is set, and drain then."""
    async with penstock.serve(service_of(name), "tcp://127.0.0.1:0") as server:
        task_status.started(server.addresses[0].port)
        await leave.wait()
        began = trio.current_time()
        await server.drain()
        # It has not waited for its deadline.
        assert trio.current_time() - began < Limits().drain / 2


@pytest.mark.parametrize("protocol", ["", "reactivesocket+"])
async def test_a_rolling_restart_under_load_loses_nothing(protocol: str) -> None:
    """Each stream has all of its elements, no request fails,
    and each server ends without waiting for its deadline.
    """
    switch = Switch()
    async with trio.open_nursery() as nursery:
        load = Load(f"{protocol}tcp://127.0.0.1:{await nursery.start(switch.serve)}")
        for number in range(2):
            nursery.start_soon(load.ask, f"ask {number}")
            nursery.start_soon(load.subscribe, f"subscribe {number}")
        old = trio.Event()
        for restart in range(RESTARTS + 1):
            load.server, load.rounds, leave = f"server {restart}", {}, trio.Event()
            switch.port = await nursery.start(run_server, load.server, leave)
            old.set()
            old = leave
            await load.wait_rounds(4)
        await load.end()
        nursery.cancel_scope.cancel()
    assert load.elements >= (RESTARTS + 1) * ROUNDS * 4 * ELEMENTS
