"""Scene: one port for plain HTTP, WebSocket and HTTP/2, each with the demand of its reader."""

import http.client
from collections.abc import AsyncIterator, Iterator
from functools import partial
from importlib.util import find_spec
from urllib.parse import urljoin

import trio

import penstock
from demo_parts import programs
from demo_parts.screen import Finding, Gauge, Screen

TITLE = "One port: HTTP, WebSocket, HTTP/2"
STORY = """\
A service at http://… and a client of Python's standard library: PUT subscribes, PUT polls. Then a reader over WebSocket takes
ten elements and stops, and `penstock cat` reads 100,000 elements over ws:// and h2:// from the same port."""
REQUESTED = 10
PAUSE_SECONDS = 0.5
ELEMENTS, SIZE = 100_000, 64


def missing() -> str:
    """Return why this scene cannot be played, or an empty text."""
    needed = ("penstock_http", "penstock_websocket")
    lacking = [name.replace("_", "-") for name in needed if find_spec(name) is None]
    return f"not installed: {', '.join(lacking)}" if lacking else ""


class _Numbers:
    """A publisher without end, and what happened to it."""

    def __init__(self) -> None:
        self.made = 0
        self.open = 0

    async def numbers(self) -> AsyncIterator[bytes]:
        """Numbers, as fast as they are requested."""
        self.made, self.open = 0, self.open + 1
        try:
            while True:
                self.made += 1
                yield b"%d" % (self.made - 1)
        finally:
            self.open -= 1


async def blocks(count: int) -> AsyncIterator[bytes]:
    """Elements of `SIZE` bytes."""
    block = bytes(SIZE)
    for _ in range(count):
        yield block


class PlainClient:
    """What a program without penstock does: requests of http.client."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def put(self, path: str) -> tuple[int, str, bytes]:
        """Return the status, the Location and the body of an answer."""
        self._connection.request("PUT", path, headers={"Accept-Encoding": "identity"})
        answer = self._connection.getresponse()
        return answer.status, answer.getheader("Location", ""), answer.read()

    def subscribe(self, name: str, demand: int, *, below: str = "") -> str:
        """Subscribe to a publisher, and return the path of the subscription."""
        publisher = f"{below}/p/{name}"
        status, location, body = self.put(f"{publisher}?request={demand}")
        if status != http.client.CREATED:
            raise RuntimeError(f"PUT {publisher} was answered with {status}: {body.decode()}")
        return urljoin(publisher, location)


async def _with_a_plain_client(port: int, numbers: _Numbers) -> list[Finding]:
    client = PlainClient(port)
    run = trio.to_thread.run_sync
    stream = await run(client.subscribe, "numbers", REQUESTED)
    bodies = [(await run(client.put, stream))[2] for _ in range(REQUESTED)]
    status = (await run(client.put, stream))[0]
    await trio.sleep(PAUSE_SECONDS)
    made = numbers.made
    more = (await run(client.put, f"{stream}?request=1"))[2]
    await run(client.put, f"{stream}/cancel")
    after = (await run(client.put, stream))[0]
    right = bodies == [b"%d" % number for number in range(REQUESTED)] and status == 204
    return [
        Finding(
            "a plain HTTP client gets the elements that it requests, and no more are made",
            f"{len(bodies)} of {REQUESTED} in order, then {status}; {made} were made",
            shown=right and made <= REQUESTED,
        ),
        Finding(
            "more demand brings more; after a cancel the generator has ended",
            f"the next one is {more.decode()}; after the cancel {after}, and {numbers.open} "
            "generators are open",
            shown=more == b"10" and after == 404 and numbers.open == 0,
        ),
    ]


async def _over_websocket(url: str, numbers: _Numbers) -> Finding:
    async with penstock.subscribe(f"{url}/numbers", demand=1) as stream:
        for _ in range(REQUESTED):
            await anext(stream)
        await trio.sleep(PAUSE_SECONDS)
        made = numbers.made
    return Finding(
        "over WebSocket, a reader with demand=1 stops the generator where it stops",
        f"{REQUESTED} taken of {made} made",
        shown=made <= REQUESTED + 1,
    )


async def play(screen: Screen) -> list[Finding]:
    """Read with a plain client, over WebSocket, and with the command line over both."""
    numbers = _Numbers()
    service = penstock.Service()
    service.publish("numbers", numbers.numbers)
    service.publisher("blocks/{count}")(blocks)
    rates: dict[str, tuple[int, float]] = {}

    def look() -> Iterator[Gauge]:
        yield Gauge("made", f"{numbers.made}")
        for scheme, (read, rate) in rates.items():
            yield Gauge(scheme, f"{read:,} elements, {rate:,.0f} a second", min(1.0, rate / 1e6))

    async with penstock.serve(service, "http://127.0.0.1:0") as server:
        port = server.addresses[0].port or 0
        async with trio.open_nursery() as nursery:
            nursery.start_soon(screen.watch, look)
            findings = await _with_a_plain_client(port, numbers)
            findings.append(await _over_websocket(f"ws://127.0.0.1:{port}", numbers))
            for scheme in ("ws", "h2"):
                rates[scheme] = await _hurry(f"{scheme}://127.0.0.1:{port}/blocks/{ELEMENTS}")
            nursery.cancel_scope.cancel()
    findings += [
        Finding(
            f"all elements arrive over {scheme}://, at the same port",
            f"{read:,} of {ELEMENTS:,} elements of {SIZE} bytes, {rate:,.0f} a second",
            shown=read == ELEMENTS,
        )
        for scheme, (read, rate) in rates.items()
    ]
    return findings


async def _hurry(url: str) -> tuple[int, float]:
    """Read with `penstock cat`. Return how many elements came, and how many a second."""
    times: list[float] = []
    sizes: list[int] = []

    def take(data: bytes) -> None:
        times.append(trio.current_time())
        sizes.append(len(data))

    arguments = ("--format", "raw", "--demand", "1024")
    trouble = await partial(programs.cat, url, *arguments, take=take)()
    if trouble:
        return 0, 0.0
    count = sum(sizes) // SIZE
    return count, count / max(times[-1] - times[0], 1e-9)
