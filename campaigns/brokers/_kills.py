"""Kills of the broker, of the bridge and of the subscriber. Elements have a writer and a number, so
that a loss, a repeat and a wrong order show.
"""

import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import trio

import penstock
from campaigns.brokers._engines import Engine, Server
from campaigns.brokers._reader import kept
from penstock import Reconnect
from penstock.logs import BrokerLog

WRITERS = ((b"a", 1), (b"b", 1), (b"c", 5), (b"d", 40))
"""The letter of each writer, and the elements of its appends."""

BETWEEN = (50, 400)
"""Elements between two kills: a random number of this range."""


class Outcome(NamedTuple):
    """What was acknowledged, and how much of it was lost or came twice."""

    what: str
    kills: int
    elements: int
    lost: int
    repeated: int

    @property
    def is_good(self) -> bool:
        """Nothing was lost, and nothing came twice."""
        return not self.lost and not self.repeated and self.elements > 0

    def __str__(self) -> str:
        return (
            f"{self.what}: {self.kills} kills, {self.elements:,} elements acknowledged, "
            f"{self.lost} lost, {self.repeated} repeated"
        )


def _judge(what: str, kills: int, given: dict[int, bytes], seen: Sequence[bytes]) -> Outcome:
    """Compare what was acknowledged, by position, with what was read from position 0 on."""
    wrong = sum(
        not (position < len(seen) and seen[position] == element)
        for position, element in given.items()
    )
    repeated = sum(count - 1 for count in Counter(seen).values())
    return Outcome(what, kills, len(given), wrong, repeated)


async def _write(log: BrokerLog, letter: bytes, size: int, given: dict[int, bytes]) -> None:
    number = 0
    while True:
        elements = [b"%s%d.%d" % (letter, number, at) for at in range(size)]
        given.update(zip(await log.append(elements), elements, strict=True))
        number += 1


async def _write_until(log: BrokerLog, given: dict[int, bytes], count: int) -> None:
    """Let one writer append until so many elements are acknowledged."""
    while len(given) < count:
        element = b"%d" % len(given)
        [position] = await log.append([element])
        given[position] = element
        await trio.sleep(0.0005)


async def of_the_broker(engine: Engine, server: Server, kills: int, seed: int) -> Outcome:
    """Kill the server while four writers append and a reader follows."""
    chance, given, seen = random.Random(seed), dict[int, bytes](), list[bytes]()
    async with engine.writer(server.url) as log, trio.open_nursery() as nursery:

        async def follow() -> None:
            async with penstock.subscribe(log) as stream:
                async for batch in stream.batches():
                    seen.extend(batch)

        nursery.start_soon(follow)
        for letter, size in WRITERS:
            nursery.start_soon(_write, log, letter, size, given)
        for _ in range(kills):
            await log.latest(after={"0": log.latest()["0"] + chance.randint(*BETWEEN)})
            await trio.to_thread.run_sync(server.kill)
            await trio.to_thread.run_sync(server.start)
        nursery.cancel_scope.cancel()
    async with engine.reader(server.url) as log:
        stored = await penstock.collect(log.source(stop="latest"))
    if seen != stored[: len(seen)]:
        return Outcome("broker: the reader saw other elements", kills, len(given), 1, 0)
    return _judge("broker", kills, given, stored)


def _start_bridge(engine: Engine, server: Server, port: int) -> "subprocess.Popen[str]":
    words = ("-m", "campaigns.brokers._bridge", engine.name, server.url, str(port))
    bridge = subprocess.Popen([sys.executable, *words], stdout=subprocess.PIPE, text=True)
    assert bridge.stdout is not None
    assert bridge.stdout.readline() == "ready\n"
    return bridge


def _end(process: "subprocess.Popen[str]") -> None:
    process.kill()
    process.communicate()


async def of_the_bridge(
    engine: Engine, server: Server, kills: int, seed: int, port: int
) -> Outcome:
    """Kill the program that publishes the log. Its subscriber goes on by position."""
    chance, given, seen = random.Random(seed), dict[int, bytes](), list[bytes]()
    async with engine.writer(server.url) as log, trio.open_nursery() as nursery:
        nursery.start_soon(_write, log, b"x", 3, given)
        bridge = await trio.to_thread.run_sync(_start_bridge, engine, server, port)
        try:
            again = Reconnect(first=0.05, most=0.5)
            url = f"tcp://127.0.0.1:{port}/orders?partition=0"
            async with penstock.subscribe(url, start=0, reconnect=again) as stream:
                kill_at, done = chance.randint(*BETWEEN), 0
                async for batch in stream.batches():
                    seen.extend(batch)
                    if len(seen) < kill_at:
                        continue
                    if done == kills:
                        break
                    done += 1
                    await trio.to_thread.run_sync(_end, bridge)
                    bridge = await trio.to_thread.run_sync(_start_bridge, engine, server, port)
                    kill_at = len(seen) + chance.randint(*BETWEEN)
        finally:
            _end(bridge)
        nursery.cancel_scope.cancel()
    known = {position: each for position, each in given.items() if position < len(seen)}
    return _judge("bridge", kills, known, seen)


def _read_and_be_killed(url: str, file: Path, count: int, wait: float | None) -> None:
    """Run a subscriber, and kill it `wait` seconds after it has kept its first elements."""
    words = ("-m", "campaigns.brokers._reader", url, str(file), str(count))
    before = len(kept(file))
    reader = subprocess.Popen([sys.executable, *words], stdout=subprocess.PIPE, text=True)
    if wait is None:
        reader.communicate()
        return
    while reader.poll() is None and len(kept(file)) == before:
        time.sleep(0.01)
    time.sleep(wait)
    _end(reader)


async def of_the_subscriber(
    engine: Engine, server: Server, kills: int, seed: int, port: int, file: Path
) -> Outcome:
    """Kill the program that reads, at a random time. It keeps positions with what it has read."""
    chance, given = random.Random(seed), dict[int, bytes]()
    count = kills * 400
    async with engine.writer(server.url) as log, trio.open_nursery() as nursery:
        nursery.start_soon(_write_until, log, given, count)
        bridge = await trio.to_thread.run_sync(_start_bridge, engine, server, port)
        url = f"tcp://127.0.0.1:{port}/orders?partition=0"
        try:
            for _ in range(kills):
                wait = chance.random() / 10
                await trio.to_thread.run_sync(_read_and_be_killed, url, file, count, wait)
            await trio.to_thread.run_sync(_read_and_be_killed, url, file, count, None)
        finally:
            _end(bridge)
    rows = kept(file)
    in_order = [position for position, _ in rows] == list(range(count))
    outcome = _judge("subscriber", kills, given, [element for _, element in rows])
    return outcome if in_order else outcome._replace(lost=max(1, outcome.lost))
