"""Promises that involve several modules: the cost of an idle subscription, checkpoints,
fairness, and the bound on elements.
"""

import gc
import inspect
import sys
import tracemalloc
from collections.abc import Awaitable, Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import assert_checkpoints

import penstock
from penstock import ops, pipe, streams
from penstock.api import UNBOUNDED, Limits, Subscriber, Subscription
from penstock.core import ParkedTask, Scope, Stream
from penstock.runtime.server._admission import Admission
from penstock.streams import (
    SlowPolicy,
    Topic,
    collect,
    first,
    for_each,
    generate,
    subscribe,
    to_channel,
)
from penstock.testing import LeakCensus, run_virtual
from tests.core._helpers import numbers, our_tasks, quiet

# --- checkpoints


async def _anext() -> None:
    async with subscribe([1]) as stream:
        with assert_checkpoints():
            await anext(stream)


async def _batch() -> None:
    async with subscribe([1]) as stream:
        with assert_checkpoints():
            await anext(stream.batches())


async def _publish() -> None:
    with assert_checkpoints():
        await Topic[int]().publish(1)


async def _publish_many() -> None:
    with assert_checkpoints():
        await Topic[int]().publish_many([1])


async def _wait_subscribers() -> None:
    topic = Topic[int]()
    async with subscribe(topic):  # there is a subscriber: it need not wait
        with assert_checkpoints():
            await topic.wait_subscribers()


async def _wait_alone() -> None:
    with assert_checkpoints():
        await Topic[int]().wait_alone()


async def _wait_accepted() -> None:
    async with (
        penstock.serve(penstock.Service(), "memory://checkpoints"),
        penstock.connect("memory://checkpoints") as peer,
    ):
        await peer.wait_accepted()
        with assert_checkpoints():
            await peer.wait_accepted()


async def _enter_server() -> None:
    server = penstock.serve(penstock.Service(), "memory://checkpoints")
    with assert_checkpoints():
        await server.__aenter__()
    with assert_checkpoints():
        await server.__aexit__(None, None, None)


async def _wait_over() -> None:
    server = penstock.Server.__new__(penstock.Server)  # as one that can get no client and had none
    server._listeners_done, server._admission = trio.Event(), Admission(Limits())
    server._listeners_done.set()
    with assert_checkpoints():
        await server.wait_over()


async def _request() -> None:
    service = penstock.Service()
    service.publish("one", [b"1"])
    async with (
        penstock.serve(service, "memory://checkpoints"),
        penstock.connect("reactivesocket+memory://checkpoints") as peer,
    ):
        with assert_checkpoints():
            assert await peer.request_response("one") == b"1"
        with assert_checkpoints():
            await peer.fire_and_forget("one")
        with assert_checkpoints():
            await peer.metadata_push(b"1")
        with assert_checkpoints():
            assert await peer.request("one") == b"1"
        with assert_checkpoints():
            assert await penstock.request("memory://checkpoints/one") == b"1"


async def _position_at() -> None:
    service = penstock.Service()
    service.publish("log", penstock.RingLog(retention=penstock.Retention(max_count=10)))
    async with (
        penstock.serve(service, "memory://checkpoints"),
        penstock.connect("memory://checkpoints") as peer,
    ):
        with assert_checkpoints():
            assert await peer.position_at("log", 0) == 0
        with assert_checkpoints():
            assert await penstock.position_at("memory://checkpoints/log", 0) == 0


async def _next_buffer() -> None:
    service = penstock.Service()
    service.publish("ints", [b"aabb"], element_size=2)
    async with (
        penstock.serve(service, "memory://checkpoints"),
        penstock.subscribe("memory://checkpoints/ints") as stream,
    ):
        with assert_checkpoints():
            await stream.next_buffer()


async def _park() -> None:
    parked = ParkedTask()
    async with trio.open_nursery() as nursery:
        with assert_checkpoints():
            nursery.start_soon(_wake, parked)
            await parked.park()


async def _wake(parked: ParkedTask) -> None:
    while parked.task is None:
        await trio.lowlevel.checkpoint()
    parked.wake()


async def _wait_stopped() -> None:
    async with trio.open_nursery() as nursery:
        with assert_checkpoints():
            await Scope(nursery).wait_stopped()


async def _to_channel() -> None:
    send, receive = trio.open_memory_channel[int](1)
    with receive, assert_checkpoints():
        await to_channel([1], send)


async def _log() -> None:
    log = penstock.RingLog(retention=penstock.Retention(max_count=10, acknowledged=True))
    with assert_checkpoints():
        await log.append([b"1"])
    with assert_checkpoints():
        await log.elements_at({"0": 0})
    with assert_checkpoints():
        await log.position_at(0)
    with assert_checkpoints():
        await log.times()
    with assert_checkpoints():
        await log.acknowledge({"0": 1})
    with assert_checkpoints():
        reader = await log.add_reader("nightly", max_count=5)
    with assert_checkpoints():
        await reader.acknowledge({"0": 1})
    with assert_checkpoints():
        await reader.remove()


async def _spool() -> None:
    log = penstock.RingLog(retention=penstock.Retention(max_count=10))
    with assert_checkpoints():
        await penstock.Spool([b"1"], log).run()


async def _drain() -> None:
    async with penstock.serve(penstock.Service(), "memory://drained") as server:
        with assert_checkpoints():
            await server.drain()


async def _disk_log() -> None:
    with TemporaryDirectory() as folder:
        log = penstock.DiskLog(Path(folder, "log"), retention=penstock.Retention(max_count=10))
        with assert_checkpoints():
            await log.__aenter__()
        with assert_checkpoints():
            await log.append([b"1"])
        with assert_checkpoints():
            await log.backup(Path(folder, "copy"))
        with assert_checkpoints():
            await log.aclose()
        with assert_checkpoints():
            await log.__aexit__(None, None, None)


async def _shared_topic() -> None:
    log = penstock.RingLog(retention=penstock.Retention(max_count=10))
    topic = penstock.SharedTopic[bytes](log)
    with assert_checkpoints():
        await topic.__aenter__()
    with assert_checkpoints():
        await topic.publish(b"1")
    with assert_checkpoints():
        await topic.publish_many([b"2"])
    with assert_checkpoints():
        await topic.__aexit__(None, None, None)


async def _writer() -> None:
    service, log = penstock.Service(), penstock.RingLog(retention=penstock.Retention(max_count=10))
    penstock.receive(service, "orders", log)
    async with (
        penstock.serve(service, "memory://checkpoints"),
        penstock.open_writer("memory://checkpoints", "orders", writer_id="one") as writer,
    ):
        with assert_checkpoints():
            assert await writer.write(0, [b"1"])
        with assert_checkpoints():
            await writer.check()


async def _checked(function: Callable[[], Awaitable[object]]) -> None:
    with assert_checkpoints():
        await function()


CHECKPOINTS: dict[str, Callable[[], Awaitable[object]]] = {
    "Scope.wait_stopped": _wait_stopped,
    "Topic.wait_subscribers": _wait_subscribers,
    "Topic.wait_alone": _wait_alone,
    "Peer.wait_accepted": _wait_accepted,
    "Peer.request_response": _request,
    "Peer.fire_and_forget": _request,
    "Peer.metadata_push": _request,
    "Peer.request": _request,
    "request": _request,
    "Peer.position_at": _position_at,
    "position_at": _position_at,
    "Server.wait_over": _wait_over,
    "Server.__aenter__": _enter_server,
    "Server.__aexit__": _enter_server,
    "RemoteStream.next_buffer": _next_buffer,
    "Stream.__anext__": _anext,  # within a slice it does not; see test_stream.py
    "ParkedTask.park": _park,
    "Topic.publish": _publish,  # within a slice it does not; see test_topic.py
    "Topic.publish_many": _publish_many,
    "collect": lambda: _checked(lambda: collect([1])),
    "first": lambda: _checked(lambda: first([1])),
    "for_each": lambda: _checked(lambda: for_each([1], repr)),
    "to_channel": _to_channel,
    "Stream.batches": _batch,
    "Log.append": _log,
    "Log.acknowledge": _log,
    "Log.add_reader": _log,
    "Log.elements_at": _log,
    "Log.position_at": _log,
    "Log.times": _log,
    "Spool.run": _spool,
    "Server.drain": _drain,
    "Worker.run_alone": lambda: _checked(
        lambda: penstock.this_worker().run_alone(trio.lowlevel.checkpoint)
    ),
    "SharedTopic.__aenter__": _shared_topic,
    "SharedTopic.__aexit__": _shared_topic,
    "SharedTopic.publish": _shared_topic,
    "SharedTopic.publish_many": _shared_topic,
    "Writer.check": _writer,
    "Writer.write": _writer,
    "DiskLog.__aenter__": _disk_log,
    "DiskLog.__aexit__": _disk_log,
    "DiskLog.aclose": _disk_log,
    "DiskLog.backup": _disk_log,
}


def _async_functions(package) -> set[str]:
    found = set()
    for name in package.__all__:
        thing = getattr(package, name)
        if inspect.iscoroutinefunction(thing):
            found.add(name)
        elif inspect.isclass(thing):
            own = [
                attribute
                for attribute in vars(thing)
                if not attribute.startswith("_") or attribute.startswith("__a")
            ]
            found |= {
                f"{name}.{attribute}"
                for attribute in own
                if inspect.iscoroutinefunction(getattr(thing, attribute))
            }
    return found


@pytest.mark.parametrize("scenario", CHECKPOINTS.values(), ids=CHECKPOINTS)
async def test_each_async_function_checkpoints(scenario) -> None:
    """In every case: cancellation takes effect, and other tasks get a turn."""
    await scenario()
    assert our_tasks() == []


@pytest.mark.parametrize("package", [penstock, streams], ids=lambda each: each.__name__)
def test_no_async_function_is_missing_in_the_table(package) -> None:
    """A new async function fails this test until it is in the table."""
    assert _async_functions(package) <= set(CHECKPOINTS)


# --- the cost of an idle subscription


class Idle(Subscriber[int]):
    """A subscriber that requests nothing, and is small itself."""

    __slots__ = ("subscription",)

    def on_subscribe(self, subscription: Subscription, /) -> None:
        self.subscription = subscription

    def on_next(self, element: int, /) -> None:
        raise AssertionError("there was no request")

    def on_error(self, error: BaseException, /) -> None:
        raise AssertionError("there was no request")

    def on_complete(self, /) -> None:
        raise AssertionError("there was no request")


@pytest.mark.skipif(
    sys.implementation.name != "cpython", reason="tracemalloc counts bytes on CPython alone"
)
@pytest.mark.parametrize("kind", ["generator", "pipe", "topic"])
async def test_an_idle_subscription_costs_hundreds_of_bytes(nursery, kind: str) -> None:
    """It is an object, not a task: ten thousand of them fit into some megabytes."""
    piped = pipe(numbers, ops.map(abs))
    publisher = {
        "generator": generate(numbers).publisher(nursery),
        "pipe": piped.publisher(nursery),
        "topic": Topic[int](),
    }[kind]
    subscribers = [Idle() for _ in range(500)]
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for subscriber in subscribers:
            publisher.subscribe(subscriber)
        gc.collect()
        each = (tracemalloc.get_traced_memory()[0] - before) / len(subscribers)
    finally:
        tracemalloc.stop()
    assert each < 800
    assert our_tasks() == []


# --- tasks


@pytest.mark.parametrize("count", [1, 10])
async def test_each_generator_has_one_task_while_it_is_pulled(count: int) -> None:
    """From the first pull to the end, and independent of other subscriptions."""
    async with trio.open_nursery() as nursery:
        publisher = generate(numbers, 3).publisher(nursery)
        subscriptions: list[Subscription] = []

        class Keeps(Idle):
            def on_subscribe(self, subscription: Subscription, /) -> None:
                subscriptions.append(subscription)

            def on_next(self, element: int, /) -> None:
                """Do nothing."""

            def on_complete(self, /) -> None:
                """Do nothing."""

        for _ in range(2 * count):
            publisher.subscribe(Keeps())
        assert our_tasks() == []
        for subscription in subscriptions[:count]:
            subscription.request(1)
        await quiet()
        assert our_tasks() == ["penstock pump of numbers"] * count
        for subscription in subscriptions[:count]:
            subscription.request(3)
        await quiet()
        assert our_tasks() == []


# --- several subscribers


async def test_streams_in_one_nursery_share_the_time_fairly() -> None:
    """Five endless generators and five readers that never wait make about equal progress."""
    counts = [0] * 5

    async def read(number: int) -> None:
        async with subscribe(numbers) as stream:
            async for _ in stream:
                counts[number] += 1
                if max(counts) >= 20_000:
                    return

    async with trio.open_nursery() as nursery:
        for number in range(5):
            nursery.start_soon(read, number)
    assert min(counts) > max(counts) / 2


@pytest.mark.parametrize("how", ["element", "batch"])
async def test_a_deadline_ends_a_busy_stream(how: str) -> None:
    """Neither the generator nor the reader ever waits; cancellation reaches both."""
    with trio.CancelScope() as scope:
        async with subscribe(numbers) as stream:
            count = 0
            async for _ in stream if how == "element" else stream.batches():
                count += 1
                if count == 5:
                    scope.cancel()
    assert scope.cancelled_caught
    assert count < 5_000


# --- the bound on elements


@given(
    demand=st.integers(min_value=1, max_value=300),
    reads=st.lists(st.sampled_from(["element", "batch", "pause"]), max_size=30),
)
def test_a_generator_is_never_ahead_of_its_reader_by_more_than_the_demand(
    demand: int, reads: list[str]
) -> None:
    """The demand bounds the elements that were pulled and are not yet taken,
    from the generator to the loop's body.
    """

    async def scenario() -> None:
        pulled = taken = 0

        async def watched():
            nonlocal pulled
            while True:
                pulled += 1
                assert pulled - taken <= demand
                yield pulled

        async with subscribe(watched, demand=demand) as stream:
            for read in reads:
                if read == "pause":
                    await quiet()
                    continue
                # A reader that asks for the next element has handled the last one.
                taken += 1 if read == "element" else len(await anext(stream.batches()))
                if read == "element":
                    assert await anext(stream) == taken

    run_virtual(scenario)


@pytest.mark.parametrize("demand", [1, 7, 256])
async def test_a_pipe_holds_no_more_than_the_demand(demand: int) -> None:
    """Stages that buffer nothing add nothing to the bound."""
    pulled = 0

    async def watched():
        nonlocal pulled
        while True:
            pulled += 1
            yield pulled

    async with subscribe(
        pipe(watched, ops.map(abs), ops.filter(bool), ops.take(10_000)), demand=demand
    ) as stream:
        for taken in range(1, 50):
            assert await anext(stream) == taken
            await quiet()
            assert pulled <= taken - 1 + demand


# --- ends


@pytest.mark.parametrize("length", [0, 1, 2, 256, 257])
async def test_a_source_that_knows_its_end_completes_with_its_last_element(length: int) -> None:
    """With a demand of exactly its length: for sequences, sets and dicts, and through a pipe."""
    made = [
        list(range(length)),
        tuple(range(length)),
        range(length),
        dict.fromkeys(range(length)),
        set(range(length)),
    ]
    for source in [
        *made,
        pipe(list(range(length)), ops.map(lambda number: number)),
        pipe(numbers, ops.take(length)),
    ]:
        async with subscribe(source, demand=0) as stream:
            if length:
                stream.request(length)
                await quiet()
            assert stream.statistics().state is penstock.StreamState.COMPLETED
            assert stream.statistics().received == length


@pytest.mark.parametrize("slow", SlowPolicy)
async def test_nothing_is_left_after_many_streams(slow: SlowPolicy) -> None:
    """Pipes, topics, streams and sinks, one after the other and nested:
    no task, stream or topic stays in memory.
    """
    census = LeakCensus()

    async def many_streams() -> None:
        topic: Topic[int] = Topic(slow=slow)
        census.watch(topic, "the topic")
        async with subscribe(pipe(topic, ops.map(abs)), demand=UNBOUNDED) as outer:
            census.watch(outer, "the outer stream")
            async with subscribe(lambda: numbers(50), demand=3) as inner:
                census.watch(inner, "the inner stream")
                async for number in inner:
                    await topic.publish(number)
            assert await anext(outer) == 0
        assert await first(pipe(numbers, ops.skip(5))) == 5

    await many_streams()
    assert census.leaks() == []


def test_a_stream_by_itself_needs_no_run() -> None:
    """Signals are plain calls: a stream also records them outside of trio."""
    stream: Stream[int] = Stream()
    stream.on_next(1)
    stream.on_complete()
    assert stream.statistics().buffered == 1
