"""What a topic keeps for a slow peer alone counts for that peer, over a connection and without
one.
"""

from collections.abc import Callable
from typing import Any

import pytest
import trio
import trio.testing

from penstock import Service, SharedTopic, connect, serve
from penstock.logs import Retention, RingLog
from penstock.runtime.connection._memory_budget import FULL_FOR_ADDRESS
from penstock.streams import SlowPolicy, Source, Topic
from penstock.testing import ManualSubscriber
from tests.runtime.server.test_hosted_streams import Fixture, PlainSubscriber

SIZE = 10_000
KEPT = 10
PEERS = 20


def _retaining(slow: SlowPolicy = SlowPolicy.DROP_OLDEST) -> Topic[bytes]:
    return Topic(slow=slow, buffer=1, retain=KEPT)


def _keeping_the_oldest() -> Topic[bytes]:
    return Topic(slow=SlowPolicy.DROP_NEWEST, buffer=KEPT)


def _elements() -> list[bytes]:
    """Return new objects: elements that are the same object would cost nothing."""
    return [bytes(SIZE) for _ in range(KEPT)]


async def _join_one_after_another(
    nursery: trio.Nursery, source: Source[bytes], topic: Any, subscribers: list[ManualSubscriber]
) -> None:
    """Each joins with a demand of one, and then the topic moves on."""
    for each in subscribers:
        source.publisher(nursery).subscribe(each)
        each.request(1)
        await trio.testing.wait_all_tasks_blocked()
        await topic.publish_many(_elements())
        await trio.testing.wait_all_tasks_blocked()
    await topic.publish_many(_elements())
    await trio.testing.wait_all_tasks_blocked()


@pytest.mark.parametrize("name", ["topic", "mapped"])
@pytest.mark.parametrize("make", [_retaining, _keeping_the_oldest])
async def test_elements_that_only_a_slow_peer_keeps_count_for_its_connection(
    make: Callable[[], Topic[bytes]], name: str
) -> None:
    """Twenty peers that take one element held 2 MB of a topic, and no account knew of it."""
    topic, service = make(), Service()
    service.publisher("topic")(lambda: topic)
    # An operator between the topic and the peer: the elements wait in the topic.
    service.publisher("mapped")(lambda: topic.map(bytes.upper))
    await topic.publish_many(_elements())
    async with serve(service, "memory://test") as server, connect("memory://test") as peer:
        subscribers = [ManualSubscriber(within=5.0) for _ in range(PEERS)]
        async with trio.open_nursery() as nursery:
            await _join_one_after_another(nursery, peer.source(name), topic, subscribers)
            held = PEERS * (KEPT - 1) * SIZE
            counted = server.statistics().buffered_bytes
            assert held <= counted < held + PEERS * (SIZE + 10_000)
            # What is taken counts no more.
            for each in subscribers:
                each.request(KEPT + 2)
            await trio.testing.wait_all_tasks_blocked()
            assert server.statistics().buffered_bytes < PEERS * 10_000
            for each in subscribers:
                each.cancel()
            await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
        await trio.testing.wait_all_tasks_blocked()
        assert server.statistics().buffered_bytes < 10_000


@pytest.mark.parametrize(
    "slow", [SlowPolicy.DROP_OLDEST, SlowPolicy.FAIL, SlowPolicy.WAIT, SlowPolicy.LATEST]
)
async def test_elements_that_the_topic_has_itself_count_for_no_peer(slow: SlowPolicy) -> None:
    """They are the same objects for all subscribers: counted for each, they would cost honest
    peers their connections.
    """
    buffer = None if slow is SlowPolicy.LATEST else KEPT
    topic: Topic[bytes] = Topic(slow=slow, buffer=buffer, retain=KEPT)
    service = Service()
    service.publisher("topic")(lambda: topic)
    await topic.publish_many(_elements())
    async with (
        serve(service, "memory://test") as server,
        connect("memory://test") as peer,
        trio.open_nursery() as nursery,
    ):
        for _ in range(PEERS):
            subscriber = ManualSubscriber(within=5.0)
            peer.source("topic").publisher(nursery).subscribe(subscriber)
            subscriber.request(1)
        await trio.testing.wait_all_tasks_blocked()
        await topic.publish_many(_elements()[1:])
        await trio.testing.wait_all_tasks_blocked()
        assert server.statistics().buffered_bytes < PEERS * (SIZE + 10_000)
        nursery.cancel_scope.cancel()


async def test_a_retained_element_that_is_taken_uncounts_no_other() -> None:
    """The topic has it itself still. The peer holds two others alone, and they stay counted."""
    topic: Topic[bytes] = Topic(slow=SlowPolicy.DROP_NEWEST, buffer=2, retain=KEPT)
    service = Service()
    service.publisher("topic")(lambda: topic)
    await topic.publish_many(_elements())
    subscriber = ManualSubscriber(within=5.0)
    async with (
        serve(service, "memory://test") as server,
        connect("memory://test") as peer,
        trio.open_nursery() as nursery,
    ):
        peer.source("topic").publisher(nursery).subscribe(subscriber)
        subscriber.request(1)
        await trio.testing.wait_all_tasks_blocked()
        await topic.publish_many(_elements()[:2])
        before = server.statistics().buffered_bytes
        subscriber.request(3)
        await trio.testing.wait_all_tasks_blocked()
        assert 2 * SIZE <= server.statistics().buffered_bytes == before
        nursery.cancel_scope.cancel()


async def test_a_shared_topic_counts_as_a_topic_does() -> None:
    """Its elements come from a log, and its retained ones too."""
    log, service = RingLog(retention=Retention(max_count=1_000)), Service()
    async with SharedTopic[bytes](
        log, slow=SlowPolicy.DROP_NEWEST, buffer=KEPT, retain=KEPT
    ) as topic:
        service.publisher("topic")(lambda: topic)
        async with serve(service, "memory://test") as server, connect("memory://test") as peer:
            subscribers = [ManualSubscriber(within=5.0) for _ in range(PEERS)]
            async with trio.open_nursery() as nursery:
                await _join_one_after_another(nursery, peer.source("topic"), topic, subscribers)
                held = PEERS * (KEPT - 1) * SIZE
                assert server.statistics().buffered_bytes >= held
                for each in subscribers:
                    each.cancel()
                await trio.testing.wait_all_tasks_blocked()
                nursery.cancel_scope.cancel()
            await trio.testing.wait_all_tasks_blocked()
            assert server.statistics().buffered_bytes < 10_000


async def test_the_peer_that_makes_a_topic_keep_most_is_cut() -> None:
    """While the topic publishes: the others get their elements, and nothing stays counted."""
    async with trio.open_nursery() as nursery:
        # A quarter of it is for the address of the client.
        fixture = Fixture(nursery, memory_budget=4 * KEPT * SIZE)
        topic = _keeping_the_oldest()
        fixture.service.publisher("topic")(lambda: topic)
        subscriber: Any = PlainSubscriber()
        await fixture.open("topic", subscriber)
        subscriber.request(1)
        for element in _elements() + _elements():
            await topic.publish(element)
            await trio.testing.wait_all_tasks_blocked()
        assert str(subscriber.error) == FULL_FOR_ADDRESS
        await trio.testing.wait_all_tasks_blocked()
        assert (topic.statistics().subscribers, fixture.budget.held()) == (0, 0)
        fixture.streams.stop()


async def test_objects_that_are_not_bytes_count_their_own_size() -> None:
    """Without what they refer to."""
    topic: Topic[Any] = Topic(slow=SlowPolicy.DROP_NEWEST, buffer=KEPT)
    service = Service()
    service.publisher("topic", type=str)(lambda: topic)
    async with (
        serve(service, "memory://test") as server,
        connect("memory://test") as peer,
        trio.open_nursery() as nursery,
    ):
        subscriber = ManualSubscriber(within=5.0)
        peer.source("topic", type=str).publisher(nursery).subscribe(subscriber)
        subscriber.request(1)
        await trio.testing.wait_all_tasks_blocked()
        for _ in range(KEPT + 1):
            await topic.publish("e" * SIZE)
        await trio.testing.wait_all_tasks_blocked()
        assert server.statistics().buffered_bytes >= KEPT * SIZE
        nursery.cancel_scope.cancel()
