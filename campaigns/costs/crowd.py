"""How long the run loop is held up when thousands of connections come or go at once:
`python -m campaigns.costs.crowd` prints a table.

The rows are processes of their own: bare trio, which is the floor; a server with Python's settings
of the garbage collector; and one that called `tune_collector`. The figures are the processor time
of the longest pass of the run loop.
"""

import argparse
import gc
import json
import resource
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from typing import Final

import trio
from penstock_tck.wire.rsio import hello, subscribe

from penstock.api import Limits
from penstock.runtime import Service, serve, tune_collector
from tests.hostile._beside_a_canary import wait_until
from tests.hostile._loop_passes import LoopPasses

ROWS: Final = {
    "bare trio": "a bare trio server, which collects nothing",
    "default": "Python's default",
    "tuned": "`tune_collector`",
}
HEAD: Final = (
    "| settings of the collector | arriving, ms | leaving, ms | reset, ms | leaving with streams, ms "
    "|\n|---|--:|--:|--:|--:|"
)

STREAMS: Final = 1024
"""`Limits.max_subscriptions`: the streams of each connection of the last column."""

WITH_STREAMS: Final = 40
"""Its connections. So many fill the default memory budget with the tasks of publishers."""

REQUESTS: Final = b"".join(subscribe("waits", stream, 1) for stream in range(STREAMS))


async def measure(
    port: int,
    connections: Callable[[], int],
    *,
    count: int,
    are_reset: bool,
    streams: Callable[[], int] | None = None,
) -> None:
    """Let a crowd come and go, and print the two figures as JSON."""
    passes = LoopPasses()
    trio.lowlevel.add_instrument(passes)
    command = [
        sys.executable,
        "-m",
        "campaigns.costs._crowd_clients",
        str(port),
        str(count),
        *(["--reset"] if are_reset else []),
    ]
    process = await trio.lowlevel.open_process(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdin is not None
    assert process.stdout is not None
    sent = hello() + (REQUESTS if streams is not None else b"")
    await process.stdin.send_all(f"{sent.hex()}\n".encode())
    await process.stdout.receive_some()
    await wait_until(lambda: connections() == count)
    if streams is not None:
        await wait_until(lambda: streams() == count * STREAMS)
    arriving, passes.longest = passes.longest, 0.0
    await process.stdin.send_all(b"\n")
    await wait_until(lambda: not connections())
    await process.wait()
    trio.lowlevel.remove_instrument(passes)
    print(json.dumps([arriving, passes.longest]), flush=True)


async def serve_bare(*, count: int, are_reset: bool) -> None:
    """Read what arrives and drop it, in a task for each connection."""
    opened = set[trio.SocketStream]()

    async def read(stream: trio.SocketStream) -> None:
        opened.add(stream)
        async with stream:
            try:
                while await stream.receive_some(65536):
                    pass
            except trio.BrokenResourceError:
                pass
        opened.remove(stream)

    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1", backlog=count)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.serve_listeners, read, listeners)
        gc.disable()
        await measure(
            listeners[0].socket.getsockname()[1],
            lambda: len(opened),
            count=count,
            are_reset=are_reset,
        )
        nursery.cancel_scope.cancel()


async def serve_penstock(
    *, count: int, are_reset: bool, have_streams: bool, is_tuned: bool
) -> None:
    """Serve without a bound that the crowd would reach."""
    limits = Limits(max_connections=2 * count, memory_budget=2**30)
    service, waiting = Service(), 0

    @service.publisher("waits")
    async def waits() -> AsyncIterator[bytes]:
        nonlocal waiting
        waiting += 1
        await trio.sleep_forever()
        yield b""

    async with serve(
        service, "tcp://127.0.0.1:0", limits=limits, on_violation=lambda _: None
    ) as server:
        if is_tuned:
            tune_collector()
        port = server.addresses[0].port
        await measure(
            port,
            lambda: len(server._admission.open),
            count=count,
            are_reset=are_reset,
            streams=(lambda: waiting) if have_streams else None,
        )


def _figures(
    row: str, count: int, *, are_reset: bool = False, have_streams: bool = False
) -> list[float]:
    command = [
        sys.executable,
        "-m",
        "campaigns.costs.crowd",
        "--serve",
        row,
        "--count",
        str(count),
        *(["--reset"] if are_reset else []),
        *(["--streams"] if have_streams else []),
    ]
    return [
        1000 * each
        for each in json.loads(
            subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        )
    ]


def table(count: int, rounds: int, with_streams: int = WITH_STREAMS) -> str:
    """Return the table: the longest pass of all rounds."""
    lines = [HEAD]
    for row, title in ROWS.items():
        closed, reset = (
            [
                max(each)
                for each in zip(
                    *(_figures(row, count, are_reset=are_reset) for _ in range(rounds)), strict=True
                )
            ]
            for are_reset in (False, True)
        )
        # Streams mean nothing to the bare server.
        leaving = (
            ""
            if row == "bare trio"
            else f"{max(_figures(row, with_streams, have_streams=True)[1] for _ in range(rounds)):.0f}"
        )
        lines.append(
            f"| {title} | {max(closed[0], reset[0]):.0f} | {closed[1]:.0f} | {reset[1]:.0f} | "
            f"{leaving} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Print the table, or be one of its processes."""
    parser = argparse.ArgumentParser(prog="campaigns.costs.crowd", description=__doc__)
    parser.add_argument("--count", type=int, default=5000, help="the number of connections")
    parser.add_argument(
        "--rounds",
        type=int,
        default=3,
        help="the number of rounds; the table has the longest pass of all",
    )
    parser.add_argument("--serve", choices=ROWS, help=argparse.SUPPRESS)
    parser.add_argument("--reset", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--streams", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    if options.serve == "bare trio":
        trio.run(lambda: serve_bare(count=options.count, are_reset=options.reset))
    elif options.serve is not None:
        trio.run(
            lambda: serve_penstock(
                count=options.count,
                are_reset=options.reset,
                have_streams=options.streams,
                is_tuned=options.serve == "tuned",
            )
        )
    else:
        print(table(options.count, options.rounds))


if __name__ == "__main__":
    main()
