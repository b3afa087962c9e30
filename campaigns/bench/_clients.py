"""The clients without trio beside the one on trio and beside other libraries on asyncio; and
replays of logs over a network.

Rules of this file:

* All contenders of a group read the same elements from a server process, one by one, unless the
  contender's name says otherwise.
* nats-py pushes: its subscriber bounds nothing, and its limits on pending messages are raised, so
  that no message is dropped.
* The logs are filled before the first round. Every round reads them from the beginning.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from time import perf_counter
from typing import Any, Final

from campaigns.bench._bulk import (
    demand_for,
    nanoseconds_each,
    over_asyncio,
    over_trio,
    read_batches,
    read_elements,
    read_rsocket,
)
from campaigns.bench._measure import Bar, Group, Opening, Timer
from campaigns.bench._serving_process import serving_process

SIZE: Final = 64

TRIO: Final = "penstock on trio"
AIO: Final = "penstock.aio"
BLOCKING: Final = "penstock.blocking"
NATS: Final = "nats-py"
RSOCKET: Final = "rsocket-py"


async def _read_aio(port: int, size: int, count: int) -> float:
    """Connect with `penstock.aio`, and read one stream with `async for`."""
    from penstock import aio

    async with aio.connect(f"tcp://127.0.0.1:{port}") as peer:
        await peer.wait_accepted()
        began, got = perf_counter(), 0
        async with peer.subscribe("elements", demand=demand_for(size)) as stream:
            async for _ in stream:
                got += 1
        assert got == count
        return nanoseconds_each(began, count)


async def _read_aio_batches(port: int, size: int, count: int) -> float:
    """Connect with `penstock.aio`, and read one stream with `batches()`."""
    from penstock import aio

    async with aio.connect(f"tcp://127.0.0.1:{port}") as peer:
        await peer.wait_accepted()
        began, got = perf_counter(), 0
        async with peer.subscribe("elements", demand=demand_for(size)) as stream:
            async for batch in stream.batches():
                got += len(batch)
        assert got == count
        return nanoseconds_each(began, count)


@contextmanager
def _over_blocking(read: Callable[[Any], int], size: int, count: int) -> Iterator[Timer]:
    """Open a contender with `penstock.blocking`. Each round is one connection."""
    from penstock import blocking

    with serving_process("penstock", size, count) as server:

        def timer() -> float:
            with blocking.connect(f"tcp://127.0.0.1:{server.port}") as peer:
                peer.wait_accepted()
                began = perf_counter()
                with peer.subscribe("elements", demand=demand_for(size)) as stream:
                    assert read(stream) == count
                return nanoseconds_each(began, count)

        timer()
        yield timer


def _count_elements(stream: Any) -> int:
    got = 0
    for _ in stream:
        got += 1
    return got


def _count_batches(stream: Any) -> int:
    return sum(len(batch) for batch in stream.batches())


async def _read_nats(port: int, _size: int, count: int) -> float:
    """Read messages with nats-py.
    A message starts each round, because NATS publishes without being asked.
    """
    import nats

    client = await nats.connect(f"nats://127.0.0.1:{port}")
    messages = await client.subscribe(
        "elements", pending_msgs_limit=2 * count, pending_bytes_limit=1 << 30
    )
    await client.flush()
    began, got = perf_counter(), 0
    await client.publish("start", b"")
    async for _ in messages.messages:
        got += 1
        if got == count:
            break
    taken = nanoseconds_each(began, count)
    await client.close()
    return taken


async def _replay(port: int, size: int, count: int, *, batches: bool) -> float:
    """Connect, and read a log from its first position to its last."""
    from penstock.runtime import connect

    async with connect(f"tcp://127.0.0.1:{port}") as remote:
        await remote.wait_accepted()
        began, got = perf_counter(), 0
        # A log has no end: a stream without `stop` waits for further elements.
        async with remote.subscribe(
            "elements", start=0, stop=count, demand=demand_for(size)
        ) as stream:
            if batches:
                async for batch in stream.batches():
                    got += len(batch)
            else:
                async for _ in stream:
                    got += 1
        assert got == count
        return nanoseconds_each(began, count)


def _clients(short: bool) -> dict[str, Opening]:
    count, slow = (100_000, 3_000) if short else (600_000, 30_000)
    return {
        f"{TRIO}, by element": partial(over_trio, "penstock", read_elements, SIZE, count),
        f"{AIO}, by element": partial(over_asyncio, "penstock", _read_aio, SIZE, count),
        f"{BLOCKING}, by element": partial(_over_blocking, _count_elements, SIZE, count),
        f"{TRIO}, batches()": partial(over_trio, "penstock", read_batches, SIZE, count),
        f"{AIO}, batches()": partial(over_asyncio, "penstock", _read_aio_batches, SIZE, count),
        f"{BLOCKING}, batches()": partial(_over_blocking, _count_batches, SIZE, count),
        RSOCKET: partial(over_asyncio, "rsocket", read_rsocket, SIZE, slow),
        NATS: partial(over_asyncio, "nats", _read_nats, SIZE, slow),
    }


def _replays(short: bool) -> dict[str, Opening]:
    count = 100_000 if short else 600_000
    contenders: dict[str, Opening] = {
        "generator, by element": partial(over_trio, "penstock", read_elements, 100, count),
        "generator, batches()": partial(over_trio, "penstock", read_batches, 100, count),
    }
    for name, kind in (("RingLog", "ring_log"), ("DiskLog", "disk_log")):
        contenders[f"{name}, by element"] = partial(
            over_trio, kind, partial(_replay, batches=False), 100, count
        )
        contenders[f"{name}, batches()"] = partial(
            over_trio, kind, partial(_replay, batches=True), 100, count
        )
    return contenders


GROUPS: Final = (
    Group(
        "clients",
        "Elements of 64 bytes over loopback, by the clients of penstock and by others on asyncio",
        "element",
        f"{TRIO}, by element",
        _clients,
        (
            Bar(
                "penstock.aio by element, beside the client on trio",
                f"{AIO}, by element",
                f"{TRIO}, by element",
                at_least=0.5,
            ),
            Bar(
                "penstock.aio by batches(), beside the client on trio",
                f"{AIO}, batches()",
                f"{TRIO}, batches()",
                at_least=0.5,
            ),
            Bar("penstock.aio by element, beside nats-py", f"{AIO}, by element", NATS, at_least=10),
            Bar(
                "penstock.aio by element, beside rsocket-py",
                f"{AIO}, by element",
                RSOCKET,
                at_least=10,
            ),
        ),
        {NATS: "nats nats-server", RSOCKET: "rsocket"},
    ),
    Group(
        "replays-network",
        "Replay of elements of 100 bytes from a log over loopback",
        "element",
        "generator, by element",
        _replays,
        (
            Bar(
                "from memory over a network, by element",
                "RingLog, by element",
                "generator, by element",
                at_least=0.9,
            ),
            Bar(
                "from memory over a network, by batches()",
                "RingLog, batches()",
                "generator, batches()",
                at_least=0.9,
            ),
            Bar(
                "from disk over a network, by batches()",
                "DiskLog, batches()",
                "generator, batches()",
                at_least=0.5,
            ),
        ),
    ),
)
