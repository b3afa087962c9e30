"""Measure h2:// beside tcp://, in two processes. Prints a table of ratios.

    python -m campaigns h2_speed

The status is 1 if a ratio misses its bar. pytest does not run this file: it judges time.
"""

import sys
from typing import Final

import trio

import penstock
from campaigns._beside_tcp import (
    measure_elements,
    measure_questions,
    rounds,
    service,
    serving_process,
    title_of,
)

SIZES: Final = {64: 200_000, 4096: 20_000, 65_536: 3_000}
"""Bytes of an element, and how many elements are measured."""

QUESTIONS: Final = 2_000
BARS: Final = {"64 B": 0.25, "64 KiB": 0.12}
"""The least share of tcp:// for elements of a size."""


async def serve() -> None:
    """Serve at two addresses, and print them."""
    async with penstock.serve(service, "tcp://127.0.0.1:0", "h2://127.0.0.1:0") as server:
        sys.stdout.write(f"{' '.join(map(str, server.addresses))}\n")
        sys.stdout.flush()
        await trio.sleep_forever()


async def compare(tcp: str, h2: str) -> bool:
    """Print the table, and return whether all bars are met."""
    met = True
    for size in SIZES:
        title = title_of(size)
        over_tcp, over_h2 = await rounds(
            lambda size=size: measure_elements(tcp, size, SIZES[size]),
            lambda size=size: measure_elements(h2, size, SIZES[size]),
        )
        ratio, bar = over_h2 / over_tcp, BARS.get(title)
        met = met and (bar is None or ratio >= bar)
        sys.stdout.write(
            f"{title:>8}: tcp {over_tcp:>10,.0f}/s   h2 {over_h2:>10,.0f}/s   ratio {ratio:.2f}"
        )
        sys.stdout.write(f" (at least {bar:g})\n" if bar else "\n")
    over_tcp, over_h2 = await rounds(
        lambda: measure_questions(tcp, QUESTIONS), lambda: measure_questions(h2, QUESTIONS)
    )
    sys.stdout.write(
        f"question: tcp {1e6 / over_tcp:.0f} us   h2 {1e6 / over_h2:.0f} us   ratio "
        f"{over_tcp / over_h2:.2f}\n"
    )
    return met


def main() -> int:
    """Start the serving process, measure, and end it."""
    if sys.argv[1:] == ["serve"]:
        trio.run(serve)
        return 0
    with serving_process("h2_speed") as (tcp, h2):
        return 0 if trio.run(compare, tcp, h2) else 1


if __name__ == "__main__":
    sys.exit(main())
