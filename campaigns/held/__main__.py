"""The memory of a server with many clients that wait: held long polls over HTTP/1.1 and HTTP/2, and
subscriptions that are not used.

Run it as a program: ``python -m campaigns held [COUNT]``.
The exit status is 1 if a row is above its bar.
"""

import resource
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Final

import trio
from _raw_http2 import Asking

from penstock import Limits, Service, Topic, serve
from penstock.spi import TransportOptions, open_tcp, parse_url

COUNT: Final = 10_000
AT_ONCE: Final = 50
"""Clients that connect at the same time: more would only wait in the queue of the system."""

STREAMS: Final = 100
"""Polls of one connection of HTTP/2."""

BARS: Final = {
    "held poll, HTTP/1.1": 25.0,
    "held poll, HTTP/2": 25.0,
    "idle subscription": 8.0,
    "idle, a generator": 8.0,
}
"""KiB for each: 250 MB for 10,000 polls. The idle streams are those of a topic; in the last row
of a generator, which has no task before the first poll.
"""


async def serve_streams() -> None:
    service = Service()
    service.publish("never", Topic[bytes]())

    @service.publisher("generator")
    async def generator() -> AsyncIterator[bytes]:
        await trio.sleep_forever()
        yield b""

    most = 4 * COUNT
    limits = Limits(
        max_connections=most,
        max_connections_per_address=most,
        max_subscriptions=most,
        max_pending_handshakes=1000,
    )
    options = TransportOptions(extra={"http.hold": "3600", "http.idle": "3600"})
    async with serve(service, "http://127.0.0.1:0", limits=limits, options=options) as server:
        write(str(server.addresses[0]))
        await trio.sleep_forever()


def write(line: object) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def resident(pid: int) -> int:
    """Return the KiB of a process that are in memory."""
    [line] = [
        line
        for line in Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
        if line.startswith("VmRSS:")
    ]
    return int(line.split()[1])


async def hold_http1(url: str, _: int) -> trio.SocketStream:
    """Subscribe and poll; return the connection, which waits."""
    stream, _peer = await open_tcp(parse_url(url), TransportOptions())
    path = await subscribe_http1(stream)
    await stream.send_all(f"PUT {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    return stream


async def subscribe_http1(stream: trio.SocketStream, name: str = "never") -> str:
    await stream.send_all(f"PUT /p/{name}?request=1 HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    answer = b""
    while b"\r\n\r\n" not in answer:
        answer += await stream.receive_some()
    return "/" + answer.partition(b"Location: ../")[2].partition(b"\r\n")[0].decode()


async def hold_http2(url: str, index: int) -> trio.SocketStream | None:
    """Open a connection with `STREAMS` polls that wait, for each index."""
    if index % STREAMS:
        return None
    stream, _peer = await open_tcp(parse_url(url), TransportOptions())
    client = Asking(stream)
    await client.begin()
    for _ in range(STREAMS):
        await client.send_request(f"PUT {await client.subscribe('never', 1)}")
    return stream


async def subscribe_only(url: str, index: int, name: str = "never") -> trio.SocketStream | None:
    """Subscribe `STREAMS` times, and poll never."""
    if index % STREAMS:
        return None
    stream, _peer = await open_tcp(parse_url(url), TransportOptions())
    async with stream:
        for _ in range(STREAMS):
            await subscribe_http1(stream, name)
    return None


Hold = Callable[[str, int], Awaitable[trio.SocketStream | None]]


async def measure(name: str, hold: Hold, count: int) -> bool:
    """Print the row of `hold`, and return whether it is within its bar."""
    command = [sys.executable, __file__, "serve"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:  # noqa: ASYNC220  # nothing else runs
        try:
            assert server.stdout is not None
            url = server.stdout.readline().strip()
            streams: list[trio.SocketStream] = []
            tokens = trio.CapacityLimiter(AT_ONCE)

            async def one(index: int) -> None:
                async with tokens:
                    stream = await hold(url, index)
                    if stream is not None:
                        streams.append(stream)

            async def all_of(indexes: range) -> int:
                async with trio.open_nursery() as nursery:
                    for index in indexes:
                        nursery.start_soon(one, index)
                await trio.sleep(1)  # for the last requests: a poll that waits answers nothing
                return resident(server.pid)

            # The first ones load code, and let tables grow.
            before = await all_of(range(STREAMS))
            after = await all_of(range(STREAMS, STREAMS + count))
        finally:
            server.kill()
        for stream in streams:
            await trio.aclose_forcefully(stream)
    each = (after - before) / count
    write(
        f"{name:<22}{each:>6.1f} KiB   {(after - before) * 1024 / 1e6:>6.1f} MB for {count:,}   "
        f"(at most {BARS[name]:g} KiB)"
    )
    return each <= BARS[name]


async def main(count: int) -> int:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    held = {
        "held poll, HTTP/1.1": hold_http1,
        "held poll, HTTP/2": hold_http2,
        "idle subscription": subscribe_only,
        "idle, a generator": partial(subscribe_only, name="generator"),
    }
    return 0 if all([await measure(name, hold, count) for name, hold in held.items()]) else 1


if __name__ == "__main__":
    if sys.argv[1:] == ["serve"]:
        resource.setrlimit(
            resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2
        )
        trio.run(serve_streams)
    else:
        sys.exit(trio.run(main, int(sys.argv[1]) if sys.argv[1:] else COUNT))
