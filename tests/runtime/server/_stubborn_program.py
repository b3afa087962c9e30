"""A program whose publishers do not end: `python -m tests.runtime.server._stubborn_program DRAIN`.

It writes its address to standard error, and a line when a publisher has got to the point from
which it does not end.
"""

import sys
import threading
from collections.abc import AsyncIterator
from dataclasses import replace

import trio

import penstock

service = penstock.Service()


@service.publisher("polite")
async def polite() -> AsyncIterator[bytes]:
    """End when it is cancelled."""
    yield b"element"
    say("is there")
    await trio.sleep_forever()


@service.publisher("shielding")
async def shielding() -> AsyncIterator[bytes]:
    """Shield its cleanup, without end."""
    try:
        yield b"element"
        say("is there")
        await trio.sleep_forever()
    finally:
        with trio.CancelScope(shield=True):
            await trio.sleep_forever()


@service.publisher("shielded")
async def shielded() -> AsyncIterator[bytes]:
    """Shield itself while it waits for its next element."""
    yield b"element"
    say("is there")
    with trio.CancelScope(shield=True):
        await trio.sleep_forever()


@service.publisher("blocking")
async def blocking() -> AsyncIterator[bytes]:
    """Block the run loop in a call of the system."""
    yield b"element"
    say("is there")
    threading.Event().wait()  # a mistake that programs make


@service.publisher("spinning")
async def spinning() -> AsyncIterator[bytes]:
    """Block the run loop in Python."""
    yield b"element"
    say("is there")
    while True:
        pass


@service.publisher("threaded")
async def threaded() -> AsyncIterator[bytes]:
    """Wait for a thread that trio does not abandon."""
    yield b"element"
    say("is there")
    await trio.to_thread.run_sync(threading.Event().wait)


def say(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


async def write_address(server: penstock.Server) -> None:
    say(server.addresses[0])
    await trio.sleep_forever()


if __name__ == "__main__":
    limits = replace(penstock.Limits(), drain=float(sys.argv[1]))
    sys.exit(penstock.run(service, "tcp://127.0.0.1:0", main=write_address, limits=limits))
