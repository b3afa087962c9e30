"""Kills of members of a group, and of the broker beneath them. A member keeps in a file what it has
handled, so that a loss, a repeat and a wrong order show.

The tests of the plugins run it with few kills.
"""

import random
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, Protocol

import trio

from campaigns.brokers._member import Row, rows_of
from penstock.logs import Log

PARTITIONS = ("0", "1")
BETWEEN = (40, 150)
"""Elements between two kills: a random number of this range."""

LOOKS = 0.02
"""Seconds between two looks into the files."""

ENDS_WITHIN = 60.0
"""Seconds in which the next elements must be handled, and all of them after the last kill."""


class Server(Protocol):
    """A server that can be killed, and started with what it had."""

    url: str

    def start(self) -> None:
        """Start it, and wait until it answers."""

    def kill(self) -> None:
        """End it as kill -9 does."""


class GroupOutcome(NamedTuple):
    """What was appended, and what members have made of it."""

    what: str
    kills: int
    elements: int
    lost: int
    repeated: int
    turned: int
    """Elements that were handled for the first time after one that follows them."""

    @property
    def is_good(self) -> bool:
        """Nothing was lost, and the order was kept. Repeats are counted."""
        return not self.lost and not self.turned and self.elements > 0

    def __str__(self) -> str:
        return (
            f"{self.what}: {self.kills} kills, {self.elements:,} elements appended, {self.lost} "
            f"not handled, {self.repeated} handled again, {self.turned} out of order"
        )


class _Members:
    """Programs that are members, and their files."""

    def __init__(self, engine: str, url: str, folder: Path) -> None:
        self._words = (sys.executable, "-m", "campaigns.brokers._member", engine, url)
        self._folder = folder
        self._running: list[subprocess.Popen[str]] = []
        self._files: list[Path] = []

    def start(self) -> None:
        """Start one more, and wait until it has joined."""
        file = self._folder / f"member-{len(self._files)}"
        self._files.append(file)
        member = subprocess.Popen([*self._words, str(file)], stdout=subprocess.PIPE, text=True)
        self._running.append(member)
        assert member.stdout is not None
        assert member.stdout.readline() == "ready\n"

    def kill(self, at: int) -> None:
        """End one as kill -9 does."""
        member = self._running.pop(at)
        member.kill()
        member.communicate()

    def check_alive(self) -> None:
        """Fail if one has ended by itself: its error is on stderr."""
        for at, member in enumerate(self._running):
            assert member.poll() is None, f"member {at} has ended with {member.returncode}"

    def end(self) -> None:
        """End all."""
        while self._running:
            self.kill(0)

    def places(self) -> set[tuple[str, int]]:
        """Return the partition and the position of all that they have handled."""
        return {(row.partition, row.position) for row in self.rows()}

    def rows(self) -> list[Row]:
        """Return what all of them have handled, in the order of time."""
        return sorted(row for file in self._files for row in rows_of(file))


async def _append(log: Log, given: dict[tuple[str, int], bytes], partition: str) -> None:
    number = 0
    while True:
        element = b"%s.%d" % (partition.encode(), number)
        [position] = await log.append([element], partition=partition)
        given[partition, position] = element
        number += 1
        await trio.sleep(0.002)


def _judge(
    what: str, kills: int, given: dict[tuple[str, int], bytes], rows: list[Row]
) -> GroupOutcome:
    times = Counter((row.partition, row.position, row.value) for row in rows)
    lost = sum((*place, value) not in times for place, value in given.items())
    repeated = sum(times.values()) - len(times)
    turned, last = 0, dict.fromkeys(PARTITIONS, -1)
    seen: set[tuple[str, int]] = set()
    for row in rows:
        if (row.partition, row.position) not in seen:
            seen.add((row.partition, row.position))
            turned += row.position < last[row.partition]
            last[row.partition] = max(row.position, last[row.partition])
    return GroupOutcome(what, kills, len(given), lost, repeated, turned)


async def _more(members: _Members, count: int) -> None:
    """Wait until so many more elements were handled."""
    wanted = len(members.rows()) + count
    with trio.move_on_after(ENDS_WITHIN):
        while len(members.rows()) < wanted:  # noqa: ASYNC110  # a file tells no event
            await trio.sleep(LOOKS)
        return
    members.check_alive()
    raise AssertionError(f"members have not handled {count} more elements in {ENDS_WITHIN:g} s")


async def _all(members: _Members, given: dict[tuple[str, int], bytes]) -> None:
    with trio.move_on_after(ENDS_WITHIN):
        while given.keys() - members.places():  # noqa: ASYNC110  # a file tells no event
            await trio.sleep(LOOKS)


async def of_the_members(
    engine: str, server: Server, log: Log, folder: Path, kills: int, seed: int
) -> GroupOutcome:
    """Kill one of two members, and start another one in its place. `log` is open, and has no
    elements.
    """
    chance = random.Random(seed)

    def kill(members: _Members) -> None:
        members.kill(chance.randrange(2))
        members.start()

    return await _killed("member of a group", engine, server, log, folder, kills, chance, kill)


async def of_their_broker(
    engine: str, server: Server, log: Log, folder: Path, kills: int, seed: int
) -> GroupOutcome:
    """Kill the server while two members handle elements."""

    def kill(_: _Members) -> None:
        server.kill()
        server.start()

    chance = random.Random(seed)
    return await _killed("broker of a group", engine, server, log, folder, kills, chance, kill)


async def _killed(
    what: str,
    engine: str,
    server: Server,
    log: Log,
    folder: Path,
    kills: int,
    chance: random.Random,
    kill: Callable[[_Members], None],
) -> GroupOutcome:
    given: dict[tuple[str, int], bytes] = {}
    members = _Members(engine, server.url, folder)
    try:
        for _ in range(2):
            await trio.to_thread.run_sync(members.start)
        async with trio.open_nursery() as nursery:
            for partition in PARTITIONS:
                nursery.start_soon(_append, log, given, partition)
            for _ in range(kills):
                await _more(members, chance.randint(*BETWEEN))
                await trio.to_thread.run_sync(kill, members)
            await _more(members, chance.randint(*BETWEEN))
            nursery.cancel_scope.cancel()
        await _all(members, given)
    finally:
        members.end()
    return _judge(what, kills, given, members.rows())
