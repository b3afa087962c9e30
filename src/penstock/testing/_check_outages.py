"""The checker of logs and groups on a server that is killed, that stalls, and that stays away.

Rules of this file:

* Each check gets another server, which it may kill, and a log without elements.
* Each check has real time and a real server: it waits for what must come, and `WITHIN` ends one
  that waits in vain.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Final, NamedTuple, Protocol

import trio

from penstock.api import LogError
from penstock.brokers import BrokerGroup
from penstock.logs import BrokerLog
from penstock.streams import collect, subscribe

KILLS: Final = 3
WITHIN: Final = 120.0
LONG: Final = 50.0
SHORT: Final = 2.0
"""Seconds that a log waits for its server."""


class KillableServer(Protocol):
    """A server that can be killed, and started with what it had."""

    url: str

    def start(self) -> None:
        """Start it, and wait until it answers."""

    def kill(self) -> None:
        """End it as kill -9 does."""

    def stall(self) -> None:
        """Let it answer nothing, and keep its connections."""

    def go_on(self) -> None:
        """End a stall."""


class OutageBench(NamedTuple):
    """How a server is run, and what is opened on it."""

    run: Callable[[], AbstractContextManager[KillableServer]]
    """Returns the context of a new server."""
    log: Callable[[str, float], BrokerLog]
    """Returns a log of the server at a URL with this timeout, always the same one."""
    group: Callable[[str, float], BrokerGroup[Any]]
    """Returns a member of a group of that log, with ``acknowledge="by hand"``."""


class OutageBroken(AssertionError):
    """A log or a group does not keep its contract when its server is away."""


async def check_outages(bench: OutageBench) -> None:
    """Check a log on a server, and a group of it: what was acknowledged is there, once, after
    ``kill -9``, calls and streams end with a LogError while the server is away, and work after it.
    Raises OutageBroken for the first check that fails, or the error that a check met.
    """
    for check in CHECKS:
        what = check.__name__.removeprefix("_")
        with bench.run() as server, trio.move_on_after(WITHIN) as scope:
            try:
                await check(bench, server)
            except BaseExceptionGroup as group:
                broken = group.subgroup(OutageBroken)
                if broken is None:
                    raise
                raise OutageBroken(f"{what}: {broken.exceptions[0]}") from None
            except OutageBroken as broken:
                raise OutageBroken(f"{what}: {broken}") from None
        if scope.cancelled_caught:
            raise OutageBroken(f"{what}: nothing came within {WITHIN:g} s")


def _expect(expected: object, seen: object, what: str) -> None:
    if expected != seen:
        raise OutageBroken(f"{what}: expected {expected!r}, seen {seen!r}")


def _expect_text(error: LogError, *texts: str) -> None:
    if not any(text in str(error) for text in texts):
        raise OutageBroken(f"an error said {error}, without one of {texts}") from error


async def _kill_and_start(server: KillableServer) -> None:
    await trio.to_thread.run_sync(server.kill)
    await trio.to_thread.run_sync(server.start)


async def _refused(log: BrokerLog, elements: list[bytes], *texts: str) -> None:
    """Append elements, which must fail with a text that has one of these."""
    try:
        await log.append(elements)
    except LogError as error:
        _expect_text(error, *texts)
        return
    raise OutageBroken(f"append() to a server that is away: expected a LogError with {texts}")


async def _nothing_acknowledged_is_lost_or_repeated(
    bench: OutageBench, server: KillableServer
) -> None:
    """Appends that were under way are made again on the next connection, and appended once."""
    async with bench.log(server.url, LONG) as log:
        given: dict[int, bytes] = {}
        is_over = trio.Event()

        async def append(letter: bytes, size: int) -> None:
            number = 0
            while not is_over.is_set():
                elements = [b"%s%d.%d" % (letter, number, at) for at in range(size)]
                positions = await log.append(elements)
                for position, element in zip(positions, elements, strict=True):
                    _expect(element, given.setdefault(position, element), "an element")
                number += 1

        async with trio.open_nursery() as nursery:
            for letter, size in ((b"a", 1), (b"b", 1), (b"c", 5), (b"d", 40)):
                nursery.start_soon(append, letter, size)
            for kill in range(KILLS):
                await log.latest(after={"0": 500 * (kill + 1)})
                await _kill_and_start(server)
                await log.latest(after={"0": log.latest()["0"] + 10})
            is_over.set()
        seen = await collect(log.source(stop="latest"))
        _expect([given[position] for position in range(len(given))], seen, "all elements")


async def _a_reader_goes_on_where_it_was(bench: OutageBench, server: KillableServer) -> None:
    async with bench.log(server.url, LONG) as log, subscribe(log.source()) as stream:
        await log.append([b"1", b"2"])
        _expect([b"1", b"2"], [await anext(stream), await anext(stream)], "before the kill")
        await _kill_and_start(server)
        await log.append([b"3"])
        _expect(b"3", await anext(stream), "after it")


async def _a_server_that_stays_away_is_told(bench: OutageBench, server: KillableServer) -> None:
    """After the timeout, with who must act. The log works again when the server does."""
    async with bench.log(server.url, SHORT) as log:
        await log.append([b"1"])
        async with subscribe(log.source(start=1)) as stream:
            await trio.to_thread.run_sync(server.kill)
            await _refused(log, [b"2"], "Start the server", "whether it was appended")
            try:
                raise OutageBroken(f"a stream went on with {await anext(stream)!r}")
            except LogError as error:
                _expect_text(error, "no connection to")
        await trio.to_thread.run_sync(server.start)
        await log.append([b"3"])
        _expect(b"3", (await collect(log.source(stop="latest")))[-1], "the last element")


async def _a_stalled_server_is_told(bench: OutageBench, server: KillableServer) -> None:
    """An append that was sent may be made later. Its text says so, and the next one knows."""
    async with bench.log(server.url, SHORT) as log:
        await log.append([b"1"])
        server.stall()
        try:
            await _refused(log, [b"2"], "whether it was appended is not known")
        finally:
            server.go_on()
        await log.append(())
        await log.append([b"3"])
        seen = await collect(log.source(stop="latest"))
        if sorted(seen) not in ([b"1", b"3"], [b"1", b"2", b"3"]):
            raise OutageBroken(f"after a stall the log has {seen!r}")


async def _a_cancelled_append_leaves_the_connection_usable(
    bench: OutageBench, server: KillableServer
) -> None:
    """Its reply is dropped, and the next one has its own."""
    async with bench.log(server.url, LONG) as log:
        for number in range(20):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(log.append, [b"x%d" % number] * (1 + number % 3))
                for _ in range(number % 4 + 1):
                    await trio.lowlevel.checkpoint()
                nursery.cancel_scope.cancel()
            latest = (await log.append(())).start
            _expect(range(latest, latest + 1), await log.append([b"y"]), "the next positions")


async def _a_member_goes_on_after_a_kill(bench: OutageBench, server: KillableServer) -> None:
    """It gets each element that is not done, in order."""
    async with bench.log(server.url, LONG) as log, bench.group(server.url, LONG) as group:
        await log.append([b"%d" % number for number in range(10)])
        async with subscribe(group, demand=1) as stream:
            for number in range(10):
                record = await anext(stream)
                _expect(b"%d" % number, record.value, "the next element")
                group.acknowledge(record)
                if number == 4:
                    await _kill_and_start(server)


async def _a_member_tells_of_a_server_that_is_away(
    bench: OutageBench, server: KillableServer
) -> None:
    """Its stream ends with who must act. The next stream of the member gets what is not done."""
    for away, back in ((server.kill, server.start), (server.stall, server.go_on)):
        async with bench.log(server.url, LONG) as log, bench.group(server.url, SHORT) as group:
            await log.append([b"1", b"2"])
            async with subscribe(group) as stream:
                first = await anext(stream)
                group.acknowledge(first)
                _expect(b"2", (await anext(stream)).value, "the second element")
                with trio.move_on_after(1):  # until the first one is known as done
                    await anext(stream)
                await trio.to_thread.run_sync(away)
                try:
                    raise OutageBroken(f"a stream went on with {await anext(stream)!r}")
                except LogError as error:
                    _expect_text(error, "no connection to", "has not answered")
                finally:
                    await trio.to_thread.run_sync(back)
            is_back = False
            while not is_back:  # on a busy machine it answers late
                try:
                    async with subscribe(group) as stream:
                        again = await anext(stream)
                        is_back = True
                        _expect(b"2", again.value, "what was not done")
                        group.acknowledge(again)
                except LogError as error:
                    _expect_text(error, "no connection to", "has not answered")


CHECKS: Final = (
    _nothing_acknowledged_is_lost_or_repeated,
    _a_reader_goes_on_where_it_was,
    _a_server_that_stays_away_is_told,
    _a_stalled_server_is_told,
    _a_cancelled_append_leaves_the_connection_usable,
    _a_member_goes_on_after_a_kill,
    _a_member_tells_of_a_server_that_is_away,
)
"""In the order in which they run."""
