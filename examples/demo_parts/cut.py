"""Scene: a connection that is cut again and again, and goes on each time."""

import random
from collections.abc import AsyncIterator, Iterator
from functools import partial

import trio

import penstock
from demo_parts.screen import Finding, Gauge, Screen

TITLE = "A connection that is cut"
STORY = """\
Between a server and its reader stands a proxy that cuts all connections at random moments, 20 times, in the middle of elements.
With resume=True on both sides the connection goes on. The same with a request that takes its time."""
ELEMENTS = 40_000
CUTS = 20
DEMAND = 256
PART = 4096


class Proxy:
    """Carries bytes between clients and a server, and cuts when told to."""

    def __init__(self, port: int) -> None:
        self.cuts = 0
        self._port = port
        self._streams: set[trio.SocketStream] = set()

    async def handle(self, client: trio.SocketStream) -> None:
        """Carry the bytes of one client until one side ends, or they are cut."""
        server = await trio.open_tcp_stream("127.0.0.1", self._port)
        ends = (client, server)
        self._streams.update(ends)
        try:
            async with client, server, trio.open_nursery() as nursery:
                nursery.start_soon(self._carry, client, server)
                await self._carry(server, client)
                nursery.cancel_scope.cancel()
        except* (trio.BrokenResourceError, trio.ClosedResourceError):
            pass  # cut
        finally:
            self._streams.difference_update(ends)

    async def _carry(self, source: trio.SocketStream, target: trio.SocketStream) -> None:
        # Small parts, so that a cut hits the middle of an element.
        while data := await source.receive_some(PART):
            await target.send_all(data)

    async def cut(self) -> None:
        """End all connections without a goodbye."""
        self.cuts += bool(self._streams)
        for stream in list(self._streams):
            await trio.aclose_forcefully(stream)


async def numbers(count: int) -> AsyncIterator[bytes]:
    """Numbers, each in 64 bytes."""
    for number in range(count):
        yield b"%064d" % number


async def patient(payload: int) -> int:
    """Answer after a second, in which the connection is cut."""
    await trio.sleep(1)
    return 2 * payload


async def play(screen: Screen) -> list[Finding]:
    """Read through the proxy while it cuts."""
    chance = random.Random(7)  # noqa: S311  # the same moments in each run
    found: list[int] = []
    answers: list[int] = []
    service = penstock.Service()
    service.publisher("numbers/{count}")(numbers)
    service.request("double")(patient)
    async with (
        penstock.serve(service, "tcp://127.0.0.1:0", resume=True) as server,
        trio.open_nursery() as nursery,
    ):
        proxy = Proxy(server.addresses[0].port or 0)
        listening = partial(trio.serve_tcp, proxy.handle, 0, host="127.0.0.1")
        (listener,) = await nursery.start(listening)
        port = listener.socket.getsockname()[1]

        def look() -> Iterator[Gauge]:
            yield Gauge(
                "elements", f"{len(found):,} of {ELEMENTS:,}", min(1.0, len(found) / ELEMENTS)
            )
            yield Gauge("cuts", f"{proxy.cuts} of {CUTS}", proxy.cuts / CUTS)

        async def ask(peer: penstock.Peer) -> None:
            answers.append(await peer.request("double", 21, type=int))

        nursery.start_soon(screen.watch, look)
        url = f"tcp://127.0.0.1:{port}"
        async with penstock.connect(url, resume=True) as peer, trio.open_nursery() as asking:
            asking.start_soon(ask, peer)
            # By the count of elements: so all cuts come before the end, on a slow machine too. Two
            # are further apart than the demand, so that the connection is back before each.
            places = {
                number * ELEMENTS // CUTS + 1 + chance.randrange(ELEMENTS // CUTS - 2 * DEMAND)
                for number in range(CUTS)
            }
            async with peer.subscribe(f"numbers/{ELEMENTS}", demand=DEMAND) as stream:
                async for element in stream:
                    found.append(int(element))
                    if len(found) in places:
                        await proxy.cut()
            resumed = peer.statistics().resumed
        nursery.cancel_scope.cancel()
    lost, repeated = ELEMENTS - len(set(found)), len(found) - len(set(found))
    return [
        Finding(
            "a stream goes on over cuts: nothing is lost, nothing comes twice",
            f"{proxy.cuts} cuts, {resumed} times gone on; {len(found):,} elements, lost {lost}, "
            f"repeated {repeated}, {'in order' if found == sorted(found) else 'NOT IN ORDER'}",
            shown=found == list(range(ELEMENTS)) and proxy.cuts > 0 and resumed > 0,
        ),
        Finding(
            "a request that waited meanwhile gets its answer, once",
            f"answers: {', '.join(map(str, answers))}",
            shown=answers == [42],
        ),
    ]
