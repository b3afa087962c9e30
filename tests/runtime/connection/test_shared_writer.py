"""The task that sends for all connections of a server."""

import pytest
import trio
import trio.testing

from penstock.runtime import Service, connect, serve
from penstock.runtime.connection import SharedWriter, _shared_writer
from penstock.runtime.connection._writer import Writer as RealWriter
from penstock.streams import Topic

TURN = 0.005


class Writer:
    """A writer whose sends take `seconds`, and raise `fault`."""

    def __init__(
        self, clock: list[float], seconds: float = 0.0, fault: Exception | None = None
    ) -> None:
        self._clock = clock
        self._seconds = seconds
        self._fault = fault
        self.did: list[object] = []

    def flush(self) -> None:
        self._clock[0] += self._seconds
        self.did.append("flush")
        if self._fault is not None:
            raise self._fault

    def wake(self) -> None:
        self.did.append("wake")

    def fail_with(self, fault: Exception) -> None:
        self.did.append(fault)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr(_shared_writer, "monotonic", lambda: now[0])
    return now


async def test_each_writer_sends_once_in_order(clock: list[float]) -> None:
    """However often it was added, and also if the task waits meanwhile."""
    shared, writers = SharedWriter(TURN), [Writer(clock) for _ in range(3)]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(shared.run)
        await trio.testing.wait_all_tasks_blocked()
        assert shared.is_running
        for each in (*writers, writers[0]):
            shared.add(each)
        await trio.testing.wait_all_tasks_blocked()
        shared.add(writers[1])
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert [each.did for each in writers] == [["flush"], ["flush", "flush"], ["flush"]]


async def test_other_tasks_run_after_each_turn(clock: list[float]) -> None:
    """Ten sends of 2 ms each are made in four passes of the run loop."""
    shared, passes = SharedWriter(TURN), [0]
    writers = [Writer(clock, 0.002) for _ in range(10)]

    class Passes(trio.abc.Instrument):
        def before_io_wait(self, timeout: float) -> None:
            passes.append(sum(len(each.did) for each in writers))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(shared.run)
        await trio.testing.wait_all_tasks_blocked()
        for each in writers:
            shared.add(each)
        trio.lowlevel.add_instrument(instrument := Passes())
        await trio.testing.wait_all_tasks_blocked()
        trio.lowlevel.remove_instrument(instrument)
        nursery.cancel_scope.cancel()
    assert list(dict.fromkeys(passes)) == [0, 3, 6, 9, 10]


async def test_a_fault_ends_one_connection_and_no_other(clock: list[float]) -> None:
    """The writer is given the exception, and the others send."""
    fault = RuntimeError("a fault")
    shared, bad, good = SharedWriter(TURN), Writer(clock, fault=fault), Writer(clock)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(shared.run)
        await trio.testing.wait_all_tasks_blocked()
        shared.add(bad)
        shared.add(good)
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert bad.did == ["flush", fault]
    assert good.did == ["flush"]


async def test_writers_that_wait_send_by_themselves_when_the_task_ends(clock: list[float]) -> None:
    """A server that drains ends the task before its connections."""
    shared, writer = SharedWriter(TURN), Writer(clock)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(shared.run)
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
        shared.add(writer)
    assert not shared.is_running
    assert writer.did == ["wake"]


def _writers() -> int:
    """Return how many tasks of this run are writers of one connection."""
    tasks, found = [trio.lowlevel.current_root_task()], 0
    for task in tasks:
        if task is not None:
            found += task.name == "penstock writer"
            tasks += [each for nursery in task.child_nurseries for each in nursery.child_tasks]
    return found


async def test_the_subscribers_of_a_topic_need_no_writer_of_their_own() -> None:
    """Each element goes out, and no connection of the server gets a task."""
    topic, service = Topic[bytes](), Service()
    service.publish("topic", topic)
    async with serve(service, "memory://test"):
        async with connect("memory://test") as one, connect("memory://test") as other:
            async with one.subscribe("topic") as first, other.subscribe("topic") as second:
                await topic.wait_subscribers(at_least=2)
                before = _writers()
                for number in range(5):
                    await topic.publish(b"%d" % number)
                    assert await anext(first) == await anext(second) == b"%d" % number
                assert _writers() <= before


async def test_a_fault_in_a_send_ends_its_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """And is reported, as one in the writer's own task."""
    told: list[Exception] = []
    topic, service = Topic[bytes](), Service()
    service.publish("topic", topic)
    async with serve(service, "memory://test", on_violation=told.append) as server:
        async with connect("memory://test") as one, connect("memory://test") as other:
            async with one.subscribe("topic"), other.subscribe("topic") as second:
                await topic.wait_subscribers(at_least=2)
                bad = next(iter(server._connections.running))._link_switcher.current.writer
                take = RealWriter._take

                def fail_once(writer: RealWriter) -> bytearray:
                    if writer is bad:
                        raise RuntimeError("a fault")
                    return take(writer)

                monkeypatch.setattr(RealWriter, "_take", fail_once)
                await topic.publish(b"x")
                assert await anext(second) == b"x"
    assert "a fault" in repr(told)
