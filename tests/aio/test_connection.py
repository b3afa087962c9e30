"""One connection on asyncio: hostile servers, deadlines, pings, and cancellation at each step."""

import asyncio
import socket
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from penstock import aio
from penstock.api import (
    Limits,
)
from tests._limits import HASTY
from tests.aio._run import SECONDS, run
from tests.contracts._trio_server import SERVER_HELLO, Served, raw_server, read_hello, serving


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with serving() as running:
        yield running


def test_cancellation_at_every_step_leaves_nothing(served: Served) -> None:
    """The whole program is cancelled after each number of passes of the loop: no task, no socket
    and no waiting future is left.
    """

    async def program(steps: list[str]) -> None:
        async def one_by_one() -> AsyncIterator[bytes]:
            while True:
                yield b"x"

        async with aio.connect(
            served.url, publishers={"mine": one_by_one}, limits=Limits(goodbye_timeout=0.5)
        ) as peer:
            steps.append("connected")
            assert await peer.request("echo", b"a") == b"a"
            steps.append("asked")
            async with peer.subscribe("forever", demand=4) as stream:
                for _ in range(10):
                    await anext(stream)
                steps.append("read")
            asking = asyncio.ensure_future(peer.request("collect?name=mine"))
            try:
                await asyncio.sleep(0.01)
            finally:
                asking.cancel()
                await asyncio.wait((asking,))
            steps.append("served")
        steps.append("left")

    async def cancel_after(passes: int) -> list[str]:
        steps: list[str] = []
        task = asyncio.ensure_future(program(steps))
        for _ in range(passes):
            await asyncio.sleep(0)
            if task.done():
                break
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        return steps

    def open_files() -> int:
        # The server also has its sockets in this process.
        served.run(served.server._admission.wait_empty)
        return len([*Path("/proc/self/fd").iterdir()])

    opened = open_files()
    reached: set[str] = set()
    passes, ends = 0, time.monotonic() + SECONDS
    # No bound on the passes: while the server is slow,
    # the loop makes thousands of them for one answer.
    while "left" not in reached and time.monotonic() < ends:
        reached |= {*run(cancel_after(passes))}
        passes += 1 if passes < 40 else passes // 2
    assert {"connected", "asked", "read", "served", "left"} <= reached
    assert open_files() <= opened


def test_the_block_is_left_although_its_goodbye_is_cancelled() -> None:
    """A server that never answers:
    a cancel of the wait for its answer closes the transport at once.
    """

    def script(sock: socket.socket) -> None:
        read_hello(sock)
        sock.sendall(SERVER_HELLO)
        while sock.recv(4096):
            pass

    async def main(url: str) -> None:
        began = time.monotonic()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                async with aio.connect(url, limits=Limits(goodbye_timeout=15.0)):
                    pass
        assert time.monotonic() - began < 10

    with raw_server(script) as url:
        run(main(url))


def test_pings_are_answered_without_a_task() -> None:
    """A ping gets its pong although no task of the program waits for the connection."""
    pongs: list[bytes] = []
    answered = threading.Event()

    def script(sock: socket.socket) -> None:
        read_hello(sock)
        sock.sendall(bytes.fromhex("02000101 40026869"))
        received = b""
        while b"hi" not in received:
            received += sock.recv(4096)
        pongs.append(received[-4:])
        answered.set()
        while sock.recv(4096):
            pass

    async def main(url: str) -> None:
        async with aio.connect(url, limits=HASTY):
            while not answered.is_set():
                await asyncio.sleep(0.01)

    with raw_server(script) as url:
        run(main(url))
    assert pongs == [bytes.fromhex("41026869")]
