"""Elements for each second of the server's processor time: polls and batches over HTTP, beside a
server on h11 that knows no streams.

Run it as a program: ``python -m campaigns http_speed``.
All rows of a table are from one run, in turns.
"""

import os
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack
from statistics import median
from typing import Final

import h11
import trio

from penstock import Limits, Service, serve
from penstock.spi import TransportOptions, open_tcp, parse_url

ELEMENT: Final = b"x" * 100
ROUNDS: Final = 3
TICKS: Final = os.sysconf("SC_CLK_TCK")
REQUEST: Final = "PUT {path} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n"
BARS: Final = {
    "poll of 1": ("bare h11", 0.4),
    "batch of 100": ("poll of 1", 40),
    "batch of 1000": ("poll of 1", 200),
    "streamed": ("poll of 1", 10),
}


def write(line: object) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


async def serve_streams() -> None:
    service = Service()

    @service.publisher("endless")
    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield ELEMENT

    service.publish("many", [ELEMENT] * 10_000_000)
    async with serve(
        service, "http://127.0.0.1:0", limits=Limits(max_subscriptions=10_000)
    ) as server:
        write(str(server.addresses[0].port))
        await trio.sleep_forever()


async def serve_bare() -> None:
    """Answer every request with one element, with h11 on both directions."""

    async def answer(stream: trio.SocketStream) -> None:
        connection = h11.Connection(h11.SERVER)
        while True:
            event = connection.next_event()
            if event is h11.NEED_DATA:
                connection.receive_data(await stream.receive_some())
            elif isinstance(event, h11.EndOfMessage):
                headers = [("Content-Length", str(len(ELEMENT))), ("Cache-Control", "no-store")]
                head = connection.send(h11.Response(status_code=200, headers=headers)) or b""
                body = connection.send(h11.Data(data=ELEMENT)) or b""
                await stream.send_all(head + body + (connection.send(h11.EndOfMessage()) or b""))
                connection.start_next_cycle()
            elif isinstance(event, h11.ConnectionClosed):
                return

    [listener] = await trio.open_tcp_listeners(0, host="127.0.0.1")
    write(listener.socket.getsockname()[1])
    await trio.serve_listeners(answer, [listener])


class Peer:
    """A raw client: it must cost little, and its time does not count."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self.stream = stream
        self.rest = b""

    async def ask(self, path: str, headers: str = "") -> tuple[bytes, int]:
        """Return the head, and the bytes of the body."""
        await self.stream.send_all(REQUEST.format(path=path, headers=headers).encode())
        data = self.rest
        while (end := data.find(b"\r\n\r\n")) < 0:
            data += await self.stream.receive_some(1 << 20)
        head, body = data[:end], data[end + 4 :]
        if b"chunked" in head:
            size = len(body)
            while not body.endswith(b"\r\n0\r\n\r\n"):
                body = body[-8:] + await self.stream.receive_some(1 << 20)
                size += len(body)
            self.rest = b""
            return head, size
        at = head.index(b"Content-Length: ") + 16
        length = int(head[at : head.find(b"\r\n", at) if head.find(b"\r\n", at) > 0 else None])
        have = len(body)
        while have < length:
            have += len(await self.stream.receive_some(1 << 20))
        self.rest = body[length:] if have == len(body) else b""
        return head, length


async def polls(peer: Peer, name: str, batch: int, count: int, headers: str = "") -> int:
    """Read `count` elements in batches; return their number."""
    head, _ = await peer.ask(f"/p/{name}?request={batch}")
    path = "/s/" + head.partition(b"s/")[2].partition(b"\r\n")[0].decode()
    done = 0
    while done < count:
        # The demand of the next batch comes with this one, so its elements are there
        # when it is asked for.
        _, size = await peer.ask(f"{path}?request={batch}", headers)
        done += max(1, size // (len(ELEMENT) + 4)) if batch > 1 else 1
    await peer.ask(f"{path}/cancel")
    return done


async def bare(peer: Peer, count: int) -> int:
    for _ in range(count):
        await peer.ask("/")
    return count


def seconds_of(process: int) -> float:
    """Return the processor time of a process so far."""
    with open(f"/proc/{process}/stat") as file:  # noqa: PTH123  # a small script
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


async def measure(
    server: subprocess.Popen[str], port: str, work: Callable[[Peer], Awaitable[int]]
) -> float:
    """Return the elements for each second of the server's processor time."""
    stream, _ = await open_tcp(parse_url(f"tcp://127.0.0.1:{port}"), TransportOptions())
    async with stream:
        peer = Peer(stream)
        before = seconds_of(server.pid)
        done = await work(peer)
        return done / max(seconds_of(server.pid) - before, 1 / TICKS)


async def main() -> None:
    rows: dict[str, tuple[str, Callable[[Peer], Awaitable[int]]]] = {
        "bare h11": ("bare", lambda peer: bare(peer, 2000)),
        "poll of 1": ("streams", lambda peer: polls(peer, "endless", 1, 2000)),
        "batch of 100": ("streams", lambda peer: polls(peer, "many", 100, 100_000)),
        "batch of 1000": ("streams", lambda peer: polls(peer, "many", 1000, 400_000)),
        "streamed": (
            "streams",
            lambda peer: polls(peer, "many", 1000, 200_000, "X-Rsio-Delivery: stream\r\n"),
        ),
    }
    found: dict[str, list[float]] = {name: [] for name in rows}
    with ExitStack() as stack:
        servers = {}
        for kind in ("bare", "streams"):
            server = stack.enter_context(
                subprocess.Popen(  # noqa: ASYNC220  # before anything is measured
                    [sys.executable, __file__, kind], stdout=subprocess.PIPE, text=True
                )
            )
            stack.callback(server.kill)
            assert server.stdout is not None
            servers[kind] = server, server.stdout.readline().strip()
        for _ in range(ROUNDS):
            for name, (kind, work) in rows.items():
                found[name].append(await measure(*servers[kind], work))
    middle = {name: median(each) for name, each in found.items()}
    for name, rate in middle.items():
        other, bar = BARS.get(name, ("", 0))
        ratio = f"{rate / middle[other]:8.2f} x {other} (at least {bar})" if other else ""
        write(
            f"{name:14} {rate:12,.0f}/s [{min(found[name]):,.0f}..{max(found[name]):,.0f}] {ratio}"
        )


if __name__ == "__main__":
    kind = sys.argv[1] if len(sys.argv) > 1 else ""
    trio.run({"": main, "bare": serve_bare, "streams": serve_streams}[kind])
