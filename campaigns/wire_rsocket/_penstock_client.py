"""What `penstock tck --client` checks, by penstock: a client that does its tasks at a port,
connection after connection.
"""

import sys
from collections.abc import AsyncIterator
from itertools import count

import trio

import penstock
from penstock.api import Limits

WORDS = [b"one", b"two", b"three", b"four", b"five"]
LARGE = bytes(index % 251 for index in range(200_000))
UNBOUNDED = 2**63 - 1
LIMITS = Limits(keepalive=0.5, keepalive_timeout=10.0)


def service_of() -> penstock.Service:
    """Return what the client answers."""
    service = penstock.Service()

    @service.request("echo")
    async def echo(payload: bytes) -> bytes:
        return payload

    @service.publisher("numbers")
    async def numbers() -> AsyncIterator[bytes]:
        for number in count():
            yield b"%d" % number

    return service


async def value(peer: penstock.Peer, data: bytes) -> bytes:
    """Ask for a value, and return the outcome."""
    try:
        return b"value " + await peer.request("echo", data)
    except penstock.PenstockError as error:
        return b"empty" if "without a value" in str(error) else f"error {error}".encode()


async def elements(stream: penstock.Stream[bytes], most: int = UNBOUNDED) -> bytes:
    """Read a stream, at most so many elements, and return the outcome."""
    got: list[bytes] = []
    end = "complete"
    try:
        async for element in stream:
            got.append(element)
            if len(got) == most:
                end = "cancelled"
                break
    except penstock.PenstockError as error:
        end = f"error {error}"
    return b"elements %s %s" % (b",".join(got), end.encode())


async def perform(peer: penstock.Peer, task: str) -> bytes:  # noqa: PLR0911 (a return for each task)
    """Do a task, and return the outcome."""
    name, _, rest = task.partition(" ")
    if name == "request":
        return await value(peer, rest.encode())
    if name == "large":
        return await value(peer, LARGE)
    if name in ("stream", "cancel", "unbounded"):
        demand = UNBOUNDED if name == "unbounded" else int(rest) * (2 if name == "cancel" else 1)
        async with peer.subscribe("numbers", demand=demand) as stream:
            return await elements(stream, int(rest) if name == "cancel" else UNBOUNDED)
    if name == "channel":
        async with peer.request_channel(WORDS, name="channel", demand=2) as stream:
            return await elements(stream)
    if name == "forget":
        await peer.fire_and_forget(rest.encode(), name="echo")
        return b"done"
    if name == "push":
        await peer.metadata_push(rest.encode())
        return b"done"
    return b"done" if name in ("nothing", "serve") else b"unsupported"


async def run(url: str) -> None:
    """Connect again and again, and do a task on each connection."""
    service = service_of()
    while True:
        try:
            async with penstock.connect(url, service=service, limits=LIMITS) as peer:
                while True:
                    task = await peer.request("tck")
                    await peer.request("tck-done", await perform(peer, task.decode()))
        except* penstock.PenstockError:
            await trio.sleep(0.02)


if __name__ == "__main__":
    trio.run(run, f"rsocket+tcp://127.0.0.1:{sys.argv[1]}")
