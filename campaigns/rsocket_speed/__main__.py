"""Measure RSocket of penstock beside rsocket-java, rsocket-py and penstock's ReactiveSocket. Each
contender is two processes, and rounds of two contenders take turns.

    python -m campaigns rsocket_speed

Prints a line for each bar: the median of the ratios of rounds that follow each other, by time and by
processor time of both processes. The status is 1 if a ratio by time misses its bar; on a machine
that does other things those by processor time say more, and ``--by-processor`` judges them. rsocket-java
is warm: rounds are thrown away until it is compiled. The last bar sends 3,000,000,000 elements
through one stream between two sessions without a network. ``--short`` has fewer rounds and elements, and does without Java.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Final

import attrs

from campaigns._maven import rsocket_java
from campaigns.rsocket_speed._endless import count_through

HERE: Final = Path(__file__).parent
TICK: Final = 1 / os.sysconf("SC_CLK_TCK")
WARM: Final = {"rsocket-java": 12}
"""Rounds that are thrown away; one for all others."""
ELEMENTS: Final = 3_000_000_000


@attrs.frozen(kw_only=True)
class Bar:
    """Two contenders, and the least or the most that the ratio of their times may be."""

    title: str
    ours: tuple[str, str, int]
    """The kind, what is measured, and the count of a round."""
    theirs: tuple[str, str, int]
    faster: float
    """Ours must take at most one divided by this of the time of theirs."""


BARS: Final = (
    Bar(
        title="stream of 64 B, beside rsocket-java",
        ours=("rsocket", "64", 400_000),
        theirs=("rsocket-java", "64", 400_000),
        faster=1.0,
    ),
    Bar(
        title="stream of 16 to 1,000 B, beside rsocket-java",
        ours=("rsocket", "mixed", 200_000),
        theirs=("rsocket-java", "mixed", 200_000),
        faster=1.0,
    ),
    Bar(
        title="256 requests in flight, beside rsocket-py",
        ours=("rsocket", "requests", 8_192),
        theirs=("rsocket-py", "requests", 2_048),
        faster=5.0,
    ),
    Bar(
        title="256 requests in flight, beside ReactiveSocket of penstock",
        ours=("rsocket", "requests", 8_192),
        theirs=("reactivesocket", "requests", 8_192),
        faster=1 / 1.25,
    ),
    Bar(
        title="channel in both directions, beside a stream",
        ours=("rsocket", "channel", 200_000),
        theirs=("rsocket", "64", 400_000),
        faster=0.8,
    ),
)


class Contender:
    """A server and a client, which measures a round when it is told to."""

    def __init__(self, server: subprocess.Popen[str], client: subprocess.Popen[str]) -> None:
        self._processes = server, client

    def round(self) -> tuple[float, float]:
        """Return nanoseconds for an element, and the processor time of both sides."""
        _, client = self._processes
        assert client.stdin is not None
        assert client.stdout is not None
        before = sum(map(processor_seconds, self._processes))
        client.stdin.write("\n")
        client.stdin.flush()
        line = client.stdout.readline()
        if not line:
            sys.exit("a client has ended")
        return float(line), sum(map(processor_seconds, self._processes)) - before


def processor_seconds(process: subprocess.Popen[str]) -> float:
    """Return the time that a process has used so far, on all processors."""
    fields = (
        Path(f"/proc/{process.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    )
    return (int(fields[11]) + int(fields[12])) * TICK


@contextmanager
def contender(java: list[str], kind: str, what: str, count: int) -> Iterator[Contender]:
    """Start both sides. They are killed at the end."""
    if kind == "rsocket-java":
        serve, ask = [*java, "server"], [*java, "client"]
    else:
        side = [sys.executable, str(HERE / "_side.py")]
        serve, ask = [*side, "server", kind], [*side, "client", kind]
    server = subprocess.Popen(serve, stdout=subprocess.PIPE, text=True)
    processes = [server]
    try:
        assert server.stdout is not None
        port = server.stdout.readline().strip()
        client = subprocess.Popen(
            [*ask, what, port, str(count)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        processes.append(client)
        found = Contender(server, client)
        for _ in range(WARM.get(kind, 1)):
            found.round()
        yield found
    finally:
        for process in processes:
            process.kill()
            process.wait()


def measure(bar: Bar, rounds: int, java: list[str]) -> tuple[float, float, str]:
    """Return how many times as fast ours is, by time and by processor time, and the figures."""
    with contender(java, *bar.ours) as ours, contender(java, *bar.theirs) as theirs:
        pairs = [(ours.round(), theirs.round()) for _ in range(rounds)]
    by_time = median(their[0] / our[0] for our, their in pairs)
    counts = [each[2] * (2 if each[1] == "channel" else 1) for each in (bar.ours, bar.theirs)]
    costs = [sum(pair[side][1] for pair in pairs) / rounds / counts[side] for side in (0, 1)]
    times = [median(pair[side][0] for pair in pairs) for side in (0, 1)]
    figures = (
        f"{times[0]:,.0f} and {times[1]:,.0f} ns, {costs[0] * 1e9:,.0f} and {costs[1] * 1e9:,.0f} ns "
        "of processors"
    )
    return by_time, costs[1] / costs[0], figures


@contextmanager
def java_side(*, wanted: bool) -> Iterator[list[str]]:
    """Yield the command of `Side.java`."""
    if not wanted:
        yield []
        return
    with tempfile.TemporaryDirectory() as name:
        yield [*rsocket_java(Path(name), [HERE / "Side.java"]), "Side"]


def run(*, short: bool, by_processor: bool) -> int:
    """Measure all bars, and print them. Return how many are missed."""
    missed = 0
    bars = [bar for bar in BARS if not (short and bar.theirs[0] == "rsocket-java")]
    with java_side(wanted=not short) as java:
        for bar in bars:
            by_time, by_cost, figures = measure(bar, 3 if short else 11, java)
            is_met = (by_cost if by_processor else by_time) >= bar.faster
            missed += not is_met
            print(
                f"{'ok  ' if is_met else 'MISS'} {bar.title}: {by_time:.2f} × as fast, "
                f"{by_cost:.2f} × by processor time, {bar.faster:.2f} is due; {figures}",
                flush=True,
            )
    elements = ELEMENTS // 1000 if short else ELEMENTS
    print(f"ok   {count_through(elements):,} elements through one stream", flush=True)
    print(f"{len(bars) + 1} bars, {missed} missed")
    return missed


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="RSocket of penstock beside its peers")
    parser.add_argument("--short", action="store_true", help="fewer rounds, and no Java")
    parser.add_argument("--by-processor", action="store_true", help="judge processor time")
    options = parser.parse_args()
    sys.exit(bool(run(short=options.short, by_processor=options.by_processor)))
