"""A log on a broker: its news, its losses, refused calls. `check_log` has the sentences of the
contract.
"""

from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

import penstock
from penstock.api import LogDamaged, LogError, PositionNotRetained, UsageError
from penstock.logs import Broker, BrokerLog, Retention, Spool
from penstock.streams import collect, from_iterable, subscribe
from penstock.testing import check_log
from tests.logs._shelf import Shelf, open_broker_log


async def test_a_broker_log_keeps_the_contract() -> None:
    """Every check of the contract passes, but those of what such a log refuses."""
    await check_log(open_broker_log, refuses=("acknowledged", "readers"))


async def test_two_logs_on_one_broker_see_the_elements_of_both() -> None:
    """A broker tells what another program has appended, and `latest` does not wait for it."""
    shelf = Shelf()
    async with (
        BrokerLog(shelf) as one,
        BrokerLog(shelf) as other,
        subscribe(other.source()) as stream,
    ):
        assert await one.append([b"a"]) == range(1)
        assert await other.append([b"b"]) == range(1, 2)
        assert one.latest() == other.latest() == {"0": 2}
        assert [await anext(stream), await anext(stream)] == [b"a", b"b"]


async def test_a_transaction_of_another_program_counts() -> None:
    """An id that another log has published is published, whether the broker has told it or not."""
    shelf = Shelf()
    async with BrokerLog(shelf) as one, BrokerLog(shelf) as other:
        assert await one.transaction("a").publish()
        assert not await other.transaction("a").publish()
        assert other.is_published("a")
    async with BrokerLog(shelf) as later:
        assert later.is_published("a")


async def test_elements_that_the_broker_drops_are_an_error_with_its_ends() -> None:
    """The log did not know, and learns it from the read."""
    shelf = Shelf()
    async with BrokerLog(shelf) as log:
        await log.append([b"a", b"b", b"c"])
        shelf.drop("0", 2)
        assert log.earliest() == {"0": 0}
        with pytest.raises(PositionNotRetained, match="it has 2 up to, and not with, 3") as caught:
            await collect(log.source(start=1, stop="latest"))
        assert (caught.value.earliest, log.earliest()) == (2, {"0": 2})
        assert await log.elements_at({"0": 0}) == {"0": None}
        with pytest.raises(PositionNotRetained):
            await log.times(start=1)


async def test_a_log_has_the_partitions_that_its_broker_has() -> None:
    """Those that it asked for come beside them. One that comes later is taken over by the next
    opening.
    """
    shelf = Shelf()
    async with BrokerLog(shelf, partitions=["a"]) as one:
        async with BrokerLog(shelf, partitions=["b"]) as other:
            assert other.partitions == ("a", "b")
            await other.append([b"x"], partition="b")
        shelf.tell(["b"])
        assert one.latest() == {"a": 0}
        with pytest.raises(UsageError, match="has no partition 'b'"):
            one.source("b")


async def test_an_older_end_changes_nothing() -> None:
    """Two tasks may learn the ends in another order than that of the broker."""
    shelf = Shelf()
    async with BrokerLog(shelf) as log:
        old = shelf.partitions["0"].ends
        await log.append([b"a", b"b"])
        shelf.drop("0", 1)
        shelf.tell(["0"])
        shelf.logs[0].moved({"0": old})
        assert (log.earliest(), log.latest()) == ({"0": 1}, {"0": 2})


async def test_a_lost_broker_ends_what_waits_and_the_log_works_again(
    nursery: trio.Nursery,
) -> None:
    """A stream that waits fails with the text of the broker. A later call goes to the broker, which
    may be back.
    """
    shelf = Shelf()
    errors: list[str] = []

    async def follow(log: BrokerLog) -> None:
        with pytest.raises(LogError) as caught:
            await collect(log.source())
        errors.append(str(caught.value))

    async def wait(log: BrokerLog) -> None:
        with pytest.raises(LogError) as caught:
            await log.latest(after={"0": 0})
        errors.append(str(caught.value))

    async with BrokerLog(shelf) as log:
        nursery.start_soon(follow, log)
        nursery.start_soon(wait, log)
        await wait_all_tasks_blocked()
        shelf.logs[0].lost("start the broker")
        await wait_all_tasks_blocked()
        assert errors == ["start the broker"] * 2
        with pytest.raises(LogError, match="start the broker"):
            await collect(log.source())
        await log.append([b"a"])
        async with subscribe(log.source()) as stream:
            assert await anext(stream) == b"a"


async def test_a_broker_that_has_lost_elements_ends_streams_as_damaged() -> None:
    """A reader can tell that from a broker which is away for a while."""
    shelf = Shelf()
    async with BrokerLog(shelf) as log:
        shelf.logs[0].lost(LogDamaged("it came back with less"))
        for _ in range(2):
            with pytest.raises(LogDamaged, match="came back with less"):
                await collect(log.source())


async def test_a_broker_that_refuses_an_append_fails_that_call_alone() -> None:
    """Its LogError reaches the caller, and the next append is not affected."""
    shelf = Shelf()
    async with BrokerLog(shelf) as log:
        shelf.failure = LogError("the broker has no room")
        with pytest.raises(LogError, match="no room"):
            await log.append([b"a"])
        shelf.failure = None
        assert await log.append([b"b"]) == range(1)


async def test_a_cancelled_append_may_have_been_made_and_the_next_one_knows() -> None:
    """`append(())` is the barrier that a spool uses."""
    shelf = Shelf()
    async with BrokerLog(shelf) as log:
        shelf.may_answer = trio.Event()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(log.append, [b"a"])
            await wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
        shelf.may_answer.set()
        assert await log.append(()) == range(0)


async def test_appends_wait_while_too_much_is_under_way(nursery: trio.Nursery) -> None:
    """A broker that stalls holds 20,000 elements of a log at most. Others wait for their room."""
    shelf = Shelf()
    done: list[range] = []

    async def append(log: BrokerLog, count: int) -> None:
        done.append(await log.append([b""] * count))

    async with BrokerLog(shelf) as log:
        shelf.may_answer = trio.Event()
        nursery.start_soon(append, log, 20_000)
        await wait_all_tasks_blocked()
        shelf.may_answer.set()  # the next one would be answered
        shelf.may_answer = trio.Event()
        nursery.start_soon(append, log, 1)
        await wait_all_tasks_blocked()
        assert done == [range(20_000)]
        shelf.may_answer.set()
        await wait_all_tasks_blocked()
        assert done == [range(20_000), range(20_000, 20_001)]


async def test_a_closed_log_ends_what_waits() -> None:
    """As a `DiskLog` does."""
    log = BrokerLog(Shelf())
    with pytest.raises(UsageError, match="is not open: use it inside of `async with BrokerLog"):
        log.latest()
    async with trio.open_nursery() as nursery:
        async with log:

            async def follow() -> None:
                with pytest.raises(UsageError, match="is not open"):
                    await collect(log.source())

            nursery.start_soon(follow)
            await wait_all_tasks_blocked()
            with pytest.raises(UsageError, match="is open already"):
                async with log:
                    pass
    async with log:  # and it can be opened again
        assert log.latest() == {"0": 0}


async def test_a_broker_without_transactions_says_what_its_log_must_refuse() -> None:
    """The author of the broker reads it, if the log does not refuse them."""

    class Plain(Shelf):
        publish = Broker.publish

    async with BrokerLog(Plain()) as log:
        with pytest.raises(UsageError, match=r"give BrokerLog\(refuses=\['transactions'\]\)"):
            await log.transaction("a").publish()


def test_what_a_broker_log_refuses_is_named_at_the_call() -> None:
    """The text lists all that it refuses."""
    with pytest.raises(UsageError, match="It refuses: acknowledged, max_count, readers"):
        BrokerLog(Shelf(), retention=Retention(max_count=5), refuses=["max_count"])
    with pytest.raises(UsageError, match=r"Retention\(acknowledged=...\)"):
        BrokerLog(Shelf(), retention=Retention(max_count=5, acknowledged=True))


async def test_another_run_of_trio_cannot_use_an_open_log() -> None:
    """The tasks that wait for it are woken in the run that has opened the log."""
    async with BrokerLog(Shelf()) as log:
        with pytest.raises(UsageError, match="was opened in another run of trio"):
            await trio.to_thread.run_sync(trio.run, log.append, [b"a"])


async def test_what_the_block_raises_leaves_the_log_as_it_is() -> None:
    """It is not in a group, although the log has tasks. The broker is closed."""
    shelf = Shelf()
    with pytest.raises(ValueError, match="mine"):
        async with BrokerLog(shelf):
            raise ValueError("mine")
    assert shelf.logs == []


async def test_a_failed_opening_closes_the_broker() -> None:
    """Its error reaches the program, and the log can be opened later."""

    class Unreachable(Shelf):
        async def open(self, *args: Any) -> Any:
            await super().open(*args)
            if self.failure is not None:
                raise self.failure

    shelf = Unreachable()
    shelf.failure = LogError("start the broker")
    log = BrokerLog(shelf)
    with pytest.raises(LogError, match="start the broker"):
        await log.__aenter__()
    assert shelf.logs == []


async def test_a_spool_writes_to_a_broker_log() -> None:
    """All that takes a log takes this one."""
    async with BrokerLog(Shelf()) as log:
        await Spool(from_iterable([b"a", b"b"]), log).run()
        assert await penstock.collect(log.source(stop="latest")) == [b"a", b"b"]
