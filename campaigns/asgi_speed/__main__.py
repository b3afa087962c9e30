"""Server-sent events under uvicorn, of `AsgiApp` and of sse-starlette with the same elements: for
each second of the server's processor time, and how far a publisher is ahead of a reader that stops.

Run it as a program: ``python -m campaigns asgi_speed``.
All rows are from one run, in turns.
"""

import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import ExitStack
from statistics import median
from typing import Any, Final

import trio

COUNT: Final = 60_000
DEMAND: Final = 256
"""Requested by the reader that stops."""
READ: Final = 10
"""Elements that it reads."""
ROUNDS: Final = 3
TICKS: Final = os.sysconf("SC_CLK_TCK")
ENDLESS: Final = 10_000_000
TEXT: Final = "x" * 64
KINDS: Final = ("sse-starlette", "AsgiApp")


def write(line: object) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


class Elements:
    """Makes elements, and counts them."""

    def __init__(self) -> None:
        self.made = 0

    async def of(self, count: int) -> AsyncIterator[str]:
        self.made = 0
        for number in range(count):
            self.made += 1
            yield f'{{"id": {number:08}, "text": "{TEXT}"}}'


def site_of(kind: str) -> Any:
    from starlette.applications import Starlette
    from starlette.responses import PlainTextResponse
    from starlette.routing import Mount, Route

    elements = Elements()

    async def made(_request: Any) -> Any:
        return PlainTextResponse(str(elements.made))

    if kind == "AsgiApp":
        from penstock_http import AsgiApp

        from penstock import aio

        service = aio.Service()

        @service.publisher("elements/{count}", serializer="text")
        async def published(count: int) -> AsyncIterator[str]:
            async for element in elements.of(count):
                yield element

        streams: Any = Mount("/streams", AsgiApp(service))
    else:
        from sse_starlette import EventSourceResponse

        async def events(count: int) -> AsyncIterator[dict[str, str]]:
            number = 0
            async for element in elements.of(count):
                yield {"id": str(number), "data": element}
                number += 1

        async def stream(request: Any) -> Any:
            return EventSourceResponse(events(int(request.path_params["count"])))

        streams = Route("/streams/{count}", stream)
    return Starlette(routes=[Route("/made", made), streams])


def serve(kind: str) -> None:
    import uvicorn

    config = uvicorn.Config(site_of(kind), port=0, log_level="error", access_log=False)
    server = uvicorn.Server(config)
    socket = config.bind_socket()
    write(socket.getsockname()[1])
    server.run([socket])


class Reader:
    """A raw client: it must cost little."""

    def __init__(self, kind: str, port: int) -> None:
        self.kind = kind
        self.port = port

    async def ask(self, line: str) -> trio.SocketStream:
        stream = await trio.open_tcp_stream("127.0.0.1", self.port)
        # So that little is under way to a reader that stops.
        stream.setsockopt(trio.socket.SOL_SOCKET, trio.socket.SO_RCVBUF, 1 << 16)
        head = f"{line} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        await stream.send_all(head.encode())
        return stream

    async def events(self, count: int, demand: int) -> trio.SocketStream:
        """Begin to read `count` elements. sse-starlette knows no demand."""
        if self.kind != "AsgiApp":
            return await self.ask(f"GET /streams/{count}")
        data = await read(await self.ask(f"PUT /streams/p/elements/{count}?request={demand}"))
        secret = data.partition(b"s/")[2].partition(b"\r\n")[0].decode()
        return await self.ask(f"GET /streams/s/{secret.rpartition('/')[2]}/events?text=1")

    async def made(self) -> int:
        data = await read(await self.ask("GET /made"))
        return int(data.rpartition(b"\r\n")[2])


async def read(stream: trio.SocketStream) -> bytes:
    async with stream:
        return b"".join([bytes(data) async for data in stream])


def seconds_of(process: int) -> float:
    """Return the processor time of a process so far."""
    with open(f"/proc/{process}/stat") as file:  # noqa: PTH123  # a small script
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


async def measure(process: int, reader: Reader) -> float:
    """Return the elements for each second of the server's processor time."""
    before, seen, tail = seconds_of(process), 0, b""
    async with await reader.events(COUNT, 2 * COUNT) as stream:
        while seen < COUNT:
            data = tail + await stream.receive_some(1 << 18)
            seen += data.count(b"\nid: ")
            tail = data[-4:]
    return COUNT / max(seconds_of(process) - before, 1 / TICKS)


async def lead(reader: Reader) -> int:
    """Return how many elements were made beyond those that a reader has read, once it stops."""
    async with await reader.events(ENDLESS, DEMAND) as stream:
        data = b""
        while data.count(b"\nid: ") < READ:
            data += await stream.receive_some(1024)
        made = -1
        while made != (now := await reader.made()):
            made = now
            await trio.sleep(1)
    return made - READ


async def main() -> None:
    found: dict[str, list[float]] = {kind: [] for kind in KINDS}
    with ExitStack() as stack:
        running: dict[str, tuple[int, Reader]] = {}
        for kind in KINDS:
            server = stack.enter_context(
                subprocess.Popen(  # noqa: ASYNC220  # before anything is measured
                    [sys.executable, __file__, kind], stdout=subprocess.PIPE, text=True
                )
            )
            stack.callback(server.kill)
            assert server.stdout is not None
            running[kind] = server.pid, Reader(kind, int(server.stdout.readline()))
        for _ in range(ROUNDS):
            for kind in KINDS:
                found[kind].append(await measure(*running[kind]))
        leads = {kind: await lead(running[kind][1]) for kind in KINDS}
    middle = {kind: median(each) for kind, each in found.items()}
    for kind in KINDS:
        write(
            f"{kind:14} {middle[kind]:9,.0f}/s [{min(found[kind]):,.0f}..{max(found[kind]):,.0f}]"
            f"   {leads[kind]:6,} made beyond the {READ} that were read"
        )
    ratio = middle["AsgiApp"] / middle["sse-starlette"]
    write(f"{ratio:.2f} x sse-starlette (at least 1); a lead of {DEMAND - READ} at most")
    if ratio < 1 or leads["AsgiApp"] > DEMAND - READ:
        sys.exit(1)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        serve(sys.argv[1])
    else:
        trio.run(main)
