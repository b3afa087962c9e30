"""Measure ws:// beside tcp:// and beside trio-websocket with one message for each element, in two
processes. Prints a table of ratios.

    python -m campaigns ws_speed

The status is 1 if a ratio misses its bar. pytest does not run this file: it judges time.
"""

import sys
from contextlib import AbstractAsyncContextManager
from time import perf_counter
from typing import Final

import trio
import trio_websocket

import penstock
from campaigns._beside_tcp import (
    measure_elements,
    measure_questions,
    rounds,
    service,
    serving_process,
    title_of,
)

SIZES: Final = {64: 300_000, 4096: 40_000, 65_536: 6_000}
"""Bytes of an element, and how many elements of penstock are measured."""

BASELINE_COUNTS: Final = {64: 30_000, 4096: 20_000, 65_536: 3_000}
QUESTIONS: Final = 4_000
BARS: Final = {
    "64 B, ws to trio-websocket": 10.0,
    "64 B, ws to tcp": 0.4,
    "4 KiB, ws to trio-websocket": 2.0,
    "64 KiB, ws to trio-websocket": 0.4,
}
MOST_PER_QUESTION: Final = 3.0
"""A question over ws takes at most this many times as long as over tcp."""


async def serve() -> None:
    """Serve penstock at two addresses and trio-websocket at a third, and print them."""

    async def talk(request: trio_websocket.WebSocketRequest) -> None:
        socket = await request.accept()
        element = bytes(int(await socket.get_message()))
        try:
            while True:
                await socket.send_message(element)
        except trio_websocket.ConnectionClosed:
            pass

    async with (
        penstock.serve(service, "tcp://127.0.0.1:0", "ws://127.0.0.1:0") as server,
        trio.open_nursery() as nursery,
    ):
        baseline = await nursery.start(
            lambda task_status: trio_websocket.serve_websocket(
                talk, "127.0.0.1", 0, None, task_status=task_status
            )
        )
        sys.stdout.write(f"{' '.join(map(str, server.addresses))} {baseline.port}\n")
        sys.stdout.flush()
        await trio.sleep_forever()


def _open(port: int) -> AbstractAsyncContextManager[trio_websocket.WebSocketConnection]:
    # With its default buffer of 4 KiB it takes 3.7 times as long for 64 KiB.
    return trio_websocket.open_websocket(
        "127.0.0.1", port, "/", use_ssl=False, message_queue_size=64, receive_buffer_size=128 << 10
    )


async def measure_baseline(port: int, size: int) -> float:
    """Return messages per second of trio-websocket."""
    count = BASELINE_COUNTS[size]
    async with _open(port) as socket:
        await socket.send_message(str(size))
        await socket.get_message()
        began = perf_counter()
        for _ in range(count):
            await socket.get_message()
        took = perf_counter() - began
        with trio.move_on_after(1):
            await socket.aclose()
    return count / took


async def compare(tcp: str, ws: str, port: int) -> bool:
    """Print the table, and return whether all bars are met."""
    met = True
    for size in SIZES:
        title = title_of(size)
        over_tcp, over_ws, baseline = await rounds(
            lambda size=size: measure_elements(tcp, size, SIZES[size]),
            lambda size=size: measure_elements(ws, size, SIZES[size]),
            lambda size=size: measure_baseline(port, size),
        )
        sys.stdout.write(
            f"{title:>7}: tcp {over_tcp:>10,.0f}/s   ws {over_ws:>10,.0f}/s   trio-websocket "
            f"{baseline:>8,.0f}/s\n"
        )
        for name, ratio in (
            (f"{title}, ws to tcp", over_ws / over_tcp),
            (f"{title}, ws to trio-websocket", over_ws / baseline),
        ):
            bar = BARS.get(name)
            met = met and (bar is None or ratio >= bar)
            sys.stdout.write(
                f"         {name}: {ratio:.2f}{f' (at least {bar:g})' if bar else ''}\n"
            )
    over_tcp, over_ws = await rounds(
        lambda: measure_questions(tcp, QUESTIONS), lambda: measure_questions(ws, QUESTIONS)
    )
    ratio = over_tcp / over_ws
    sys.stdout.write(f"question: tcp {1e6 / over_tcp:.0f} us   ws {1e6 / over_ws:.0f} us   ")
    sys.stdout.write(f"ratio {ratio:.2f} (at most {MOST_PER_QUESTION:g})\n")
    return met and ratio <= MOST_PER_QUESTION


def main() -> int:
    """Start the serving process, measure, and end it."""
    if sys.argv[1:] == ["serve"]:
        trio.run(serve)
        return 0
    with serving_process("ws_speed") as (tcp, ws, port):
        return 0 if trio.run(compare, tcp, ws, int(port)) else 1


if __name__ == "__main__":
    sys.exit(main())
