"""Cuts between penstock and a peer with resume, on both sides: a relay ends each connection after a
random number of bytes, and a stream, a channel and requests must go on.

The stream has numbers in order, so each lost and each repeated element is counted. Requests and their
answers have up to 20,000 bytes, and go in fragments.
"""

import random
import subprocess
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from functools import partial

import attrs
import trio
from penstock_rsocket import SetupData

import penstock
from campaigns.interop_rsocket._pages import started
from campaigns.interop_rsocket._peers import Peer
from penstock import Credentials
from penstock.api import Limits

LEAST, MOST = 300, 30_000
"""Bytes that a connection carries in one direction before it is cut."""

LONGEST_REQUEST = 20_000

LIMITS = replace(Limits(), resume_timeout=60.0, split_outbound_at=4096)

STILL_SECONDS = 120
"""Seconds without a cut and without a number, after which nothing more is waited for."""

STANDS_STILL = "stands still"


@attrs.define
class CuttingRelay:
    """Carries bytes to a port, and cuts each connection after a random number of them."""

    port: int
    most: int
    """Cuts; connections after them are left alone."""
    chosen: random.Random
    cuts: int = 0
    done: trio.Event = attrs.field(factory=trio.Event)
    """Set with the last cut."""

    async def carry(self, near: trio.SocketStream) -> None:
        """Carry the bytes of one connection."""
        far = await trio.open_tcp_stream("127.0.0.1", self.port)
        ends = [self.chosen.randrange(LEAST, MOST) if self.cuts < self.most else -1 for _ in "ab"]
        async with trio.open_nursery() as nursery:

            async def one_way(source: trio.SocketStream, sink: trio.SocketStream, end: int) -> None:
                try:
                    while data := bytes(await source.receive_some(4096)):
                        if 0 <= end <= len(data):
                            await sink.send_all(data[:end])
                            self.cuts += 1
                            if self.cuts >= self.most:
                                self.done.set()
                            break
                        end -= len(data) if end >= 0 else 0
                        await sink.send_all(data)
                except (trio.BrokenResourceError, trio.ClosedResourceError):
                    pass
                nursery.cancel_scope.cancel()

            nursery.start_soon(one_way, near, far, ends[0])
            nursery.start_soon(one_way, far, near, ends[1])
        for stream in (near, far):
            # At once, and not in good order: a network that fails says nothing.
            await trio.aclose_forcefully(stream)


@attrs.define
class Count:
    """What has come of numbers that are due in order."""

    due: int = 0
    lost: int = 0
    repeated: int = 0

    def note(self, number: int) -> None:
        """Count a number that has come."""
        if number < self.due:
            self.repeated += 1
            return
        self.lost += number - self.due
        self.due = number + 1


async def cancel_if_still(scope: trio.CancelScope, look: Callable[[], object]) -> None:
    """Cancel `scope` when what `look` returns has not changed for `STILL_SECONDS`."""
    while True:
        before = look()
        await trio.sleep(STILL_SECONDS)
        if look() == before:
            scope.cancel()


async def as_client(asked: Peer, cuts: int, seed: int) -> str:
    """Read from a server of the library."""
    async with (
        started([*asked.command, "resume-server", asked.scheme]) as served,
        trio.open_nursery() as nursery,
    ):
        relay = CuttingRelay(served, cuts, random.Random(seed))
        listeners = await nursery.start(partial(trio.serve_tcp, relay.carry, 0, host="127.0.0.1"))
        port = listeners[0].socket.getsockname()[1]
        stream, channel, answers = Count(), Count(), Count()
        resumed = 0
        connecting = penstock.connect(
            f"rsocket+{asked.scheme}://127.0.0.1:{port}",
            resume=True,
            limits=LIMITS,
            setup=SetupData(),
            credentials=Credentials.bearer("token"),  # Spring examines them
        )
        scope = trio.CancelScope()
        nursery.start_soon(
            cancel_if_still, scope, lambda: (relay.cuts, stream.due, channel.due, answers.due)
        )
        with scope:
            async with connecting as peer:
                await peer.wait_accepted()

                async def read_stream() -> None:
                    async with peer.subscribe("count.2000000000", demand=64) as elements:
                        async for element in elements:
                            stream.note(int(element))
                            if relay.cuts >= cuts:
                                return

                async def read_channel() -> None:
                    async def sent() -> AsyncIterator[bytes]:
                        number = 0
                        while True:
                            yield b"%d" % number
                            number += 1

                    async with peer.request_channel(sent(), name="same", demand=8) as elements:
                        async for element in elements:
                            channel.note(int(element))
                            if relay.cuts >= cuts:
                                return

                async def ask() -> None:
                    number = 0
                    while relay.cuts < cuts:
                        # Blanks, which belong to no number.
                        data = b"%d" % number + b" " * (number * 997 % LONGEST_REQUEST)
                        answer = await peer.request("echo", data)
                        assert answer == data
                        answers.note(int(answer))
                        number += 1

                async with trio.open_nursery() as work:
                    work.start_soon(read_stream)
                    work.start_soon(read_channel)
                    work.start_soon(ask)
                resumed = peer.statistics().resumed
        nursery.cancel_scope.cancel()
    counts = f"stream {stream}, channel {channel}, answers {answers}"
    ending = f" {STANDS_STILL}" if scope.cancelled_caught else ""
    return f"{relay.cuts} cuts, {resumed} resumed; {counts}{ending}"


def service_of() -> penstock.Service:
    """Return a service with numbers."""
    service = penstock.Service()

    @service.publisher("count/{n}")
    async def count(n: int) -> AsyncIterator[bytes]:
        for number in range(n):
            yield b"%d" % number

    @service.request("echo")
    async def echo(payload: bytes) -> bytes:
        return payload

    @service.publisher("same")
    async def same(elements: penstock.Source[bytes]) -> AsyncIterator[bytes]:
        async with penstock.subscribe(elements, demand=8) as stream:
            async for element in stream:
                yield element

    return service


async def as_server(asked: Peer, cuts: int, seed: int) -> str:
    """Serve a client of the library, which reads for as long as connections are cut."""
    url = f"rsocket+{asked.scheme}://127.0.0.1:0"
    async with (
        penstock.serve(service_of(), url, resume=True, limits=LIMITS) as server,
        trio.open_nursery() as nursery,
    ):
        relay = CuttingRelay(server.addresses[0].port, cuts, random.Random(seed))
        listeners = await nursery.start(partial(trio.serve_tcp, relay.carry, 0, host="127.0.0.1"))
        port = listeners[0].socket.getsockname()[1]
        process: trio.Process = await nursery.start(
            partial(
                trio.run_process,
                [*asked.command, "resume-client", asked.scheme, str(port)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                check=False,
            )
        )
        assert process.stdin is not None
        assert process.stdout is not None
        with trio.CancelScope() as scope:
            nursery.start_soon(cancel_if_still, scope, lambda: relay.cuts)
            await relay.done.wait()
        if process.returncode is None:
            await process.stdin.send_all(b"stop\n")
        found = b""
        with trio.move_on_after(30):
            while data := await process.stdout.receive_some():
                found += data
        resumed = server.statistics().resumed
        if process.returncode is None:
            process.kill()
        nursery.cancel_scope.cancel()
    ending = f" {STANDS_STILL}" if scope.cancelled_caught else ""
    report = found.decode().strip() or "no report"
    return f"{relay.cuts} cuts, {resumed} resumed; {report}{ending}"


async def run(asked: Peer, cuts: int, seed: int) -> bool:
    """Cut, and print what was found. Return True if it is bad."""
    cut = as_client if asked.role == "server" else as_server
    report = await cut(asked, cuts, seed)
    print(f"{asked.title}: {report}", flush=True)
    return report.count("lost=0, repeated=0") != 3 or STANDS_STILL in report
