"""A topic that tasks of asyncio publish to."""

import asyncio

import pytest

from penstock import SlowPolicy, aio
from penstock.api import UsageError
from tests.aio._run import run
from tests.guest._served import serving


def test_subscribers_get_what_tasks_of_asyncio_publish() -> None:
    """One by one and many at a time, in order, and the end."""

    async def main() -> None:
        topic: aio.Topic[int] = aio.Topic()
        service = aio.Service()
        service.publish("topic", topic, type=int)
        async with serving(service) as (_, peer):

            async def read() -> list[int]:
                async with peer.subscribe("topic", type=int) as stream:
                    return [number async for number in stream]

            readers = [asyncio.create_task(read()) for _ in range(3)]
            await topic.wait_subscribers(at_least=3)
            for number in range(1000):
                await topic.publish(number)
            await topic.publish_many(range(1000, 2000))
            topic.complete()
            await topic.wait_alone()
            assert await asyncio.gather(*readers) == [list(range(2000))] * 3

    run(main())


def test_a_slow_subscriber_sets_the_pace() -> None:
    """`publish` waits for its demand, and a publisher that is cancelled has published nothing."""

    async def main() -> None:
        topic: aio.Topic[int] = aio.Topic(slow=SlowPolicy.WAIT)
        service = aio.Service()
        service.publish("topic", topic, type=int)
        published: list[int] = []

        async def publish() -> None:
            for number in range(100):
                await topic.publish(number)
                published.append(number)

        async with serving(service) as (_, peer):
            async with peer.subscribe("topic", type=int, demand=4) as stream:
                await topic.wait_subscribers()
                publisher = asyncio.create_task(publish())
                for number in range(50):
                    assert await anext(stream) == number
                    assert len(published) <= number + 5
                publisher.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await publisher
                topic.complete()
                rest = [number async for number in stream]
                assert rest == list(range(50, topic.statistics().published))

    run(main())


def test_what_cannot_be_published_is_refused() -> None:
    """As by the topic of trio."""

    async def main() -> None:
        topic: aio.Topic[int] = aio.Topic()
        with pytest.raises(UsageError, match="None is never an element"):
            await topic.publish(None)  # type: ignore[arg-type]  # the mistake
        topic.complete()
        with pytest.raises(UsageError, match="has ended"):
            await topic.publish(1)

    run(main())
