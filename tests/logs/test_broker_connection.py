"""The connection to a broker: made again when it is lost, given up when it is silent."""

import errno

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from penstock.api import ConnectionLost, LogDamaged, LogError, UsageError
from penstock.logs import BrokerConnection


class Line:
    """A connection that answers, is lost, or is silent."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.is_lost = trio.Event()
        self.is_silent = False

    def close(self) -> None:
        self.is_lost.set()

    async def ask(self) -> int:
        await trio.lowlevel.checkpoint()
        if self.is_silent:
            await self.is_lost.wait()
        if self.is_lost.is_set():
            raise ConnectionLost("lost")
        return self.number


class World:
    """A broker, and a connection to it that is kept."""

    def __init__(self) -> None:
        self.failures: list[Exception] = []
        self.lines: list[Line] = []
        self.told: list[str | LogDamaged] = []
        self.kept = BrokerConnection(
            self._connect, place="shelf://a", timeout=10, lost=self.told.append
        )

    async def _connect(self) -> Line:
        await trio.lowlevel.checkpoint()
        if self.failures:
            raise self.failures[0] if len(self.failures) == 1 else self.failures.pop(0)
        self.lines.append(Line(len(self.lines)))
        return self.lines[-1]


@pytest.fixture
async def world(nursery: trio.Nursery) -> World:
    made = World()
    await made.kept.open()
    nursery.start_soon(made.kept.run)
    return made


@pytest.mark.parametrize(
    ("error", "advice"),
    [
        (OSError(errno.EMFILE, "Too many open files"), "Raise the limit on open files"),
        (OSError(errno.ENFILE, "Too many open files in system"), "raise fs.file-max"),
        (OSError(errno.ECONNREFUSED, "Connection refused"), "Start the server"),
    ],
)
async def test_a_connection_that_cannot_be_made_says_who_must_act(
    error: OSError, advice: str
) -> None:
    """The operator of the program, or that of the server. trio wraps the error."""
    world = World()
    wrapped = OSError("all attempts to connect failed")
    wrapped.__cause__ = ExceptionGroup("multiple", [error])
    world.failures = [wrapped]
    with pytest.raises(LogError, match=advice):
        await world.kept.open()


async def test_a_call_whose_connection_was_lost_is_made_on_the_next_one(world: World) -> None:
    """The caller sees nothing of it."""
    assert await world.kept.call(Line.ask) == 0
    world.lines[0].close()
    assert await world.kept.call(Line.ask) == 1


async def test_a_broker_that_is_back_within_the_timeout_is_not_told_as_lost(
    world: World, autojump_clock: MockClock
) -> None:
    """The attempts have pauses between them, of a second at most."""
    world.failures = [OSError("refused")] * 8 + [OSError("last")]
    world.lines[0].close()

    async def start() -> None:
        await trio.sleep(5)
        world.failures.clear()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(start)
        assert await world.kept.call(Line.ask) == 1
    assert world.told == []
    assert trio.current_time() < 7


async def test_a_broker_that_stays_away_ends_calls_and_is_told(
    world: World, autojump_clock: MockClock
) -> None:
    """The error has the reason of the last attempt. For a call that was sent it says what is
    unknown.
    """
    world.failures = [OSError("refused")]
    world.lines[0].close()
    with pytest.raises(LogError, match=r"no connection to shelf://a: refused.*; maybe done"):
        await world.kept.call(Line.ask, doubt="maybe done")
    with pytest.raises(LogError, match=r"where it listens$"):
        await world.kept.call(Line.ask, doubt="maybe done")  # it was not sent
    assert "refused" in world.told[0]
    world.failures.clear()
    assert await world.kept.call(Line.ask) == 1


async def test_a_connection_that_is_silent_is_given_up(
    world: World, autojump_clock: MockClock
) -> None:
    """What else waits on it goes on with the next one."""
    world.lines[0].is_silent = True
    seen: list[int] = []

    async def later() -> None:
        await trio.sleep(5)
        seen.append(await world.kept.call(Line.ask))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(later)
        with pytest.raises(LogError, match=r"has not answered for 10 seconds.*; maybe done"):
            await world.kept.call(Line.ask, doubt="maybe done")
    assert seen == [1]


async def test_a_broker_that_lost_elements_is_not_used_any_more(world: World) -> None:
    """A call that waits and a later call learn it."""
    world.failures = [LogDamaged("came back with less")]
    world.lines[0].close()
    for _ in range(2):
        with pytest.raises(LogDamaged, match="came back with less"):
            await world.kept.call(Line.ask)
    [told] = world.told
    assert isinstance(told, LogDamaged)
    assert str(told) == "came back with less"


@pytest.mark.parametrize("error", [UsageError("give a password"), LogError("is no broker")])
async def test_what_a_program_shall_see_is_raised_as_it_is(error: Exception) -> None:
    """When the broker is opened."""
    made = World()
    made.failures = [error]
    with pytest.raises(type(error), match=str(error)):
        await made.kept.open()


async def test_the_first_connection_is_bounded_in_time(autojump_clock: MockClock) -> None:
    """A broker that accepts and says nothing."""
    made = World()

    async def silent() -> Line:
        await trio.sleep_forever()
        raise AssertionError

    made.kept = BrokerConnection(silent, place="shelf://a", timeout=10, lost=made.told.append)
    with pytest.raises(LogError, match="has not answered for 10 seconds"):
        await made.kept.open()


async def test_the_reason_of_a_failed_connect_is_that_of_the_system() -> None:
    """Trio puts the failures of all addresses of a name into a group."""
    made = World()
    error = OSError("all attempts failed")
    error.__cause__ = ExceptionGroup("many", [OSError("refused"), OSError("no route")])
    made.failures = [error]
    with pytest.raises(LogError, match="no connection to shelf://a: refused"):
        await made.kept.open()


async def test_a_connection_is_given_up_once(world: World) -> None:
    """Several calls may find out about one connection."""
    await wait_all_tasks_blocked()
    first = world.kept.current
    world.kept.give_up(first)
    assert await world.kept.call(Line.ask) == 1
    world.kept.give_up(first)
    assert await world.kept.call(Line.ask) == 1
