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


def test_another_thread_is_refused() -> None:
    """Each error says what to write, and that works. Nothing reaches the subscriber."""

    async def main() -> None:
        topic: aio.Topic[int] = aio.Topic()
        service = aio.Service()
        service.publish("topic", topic, type=int)
        loop = asyncio.get_running_loop()

        async def publish() -> None:
            await topic.publish(1)

        async def publish_many() -> None:
            await topic.publish_many([1, 2])

        def elsewhere() -> None:
            for call in (publish, publish_many):
                with pytest.raises(UsageError, match=r"asyncio\.run_coroutine_threadsafe"):
                    asyncio.run(call())
            with pytest.raises(UsageError, match=r"loop\.call_soon_threadsafe\(topic\.complete\)"):
                topic.complete()
            with pytest.raises(UsageError, match=r"loop\.call_soon_threadsafe\(topic\.fail, error"):
                topic.fail(ValueError())
            asyncio.run_coroutine_threadsafe(topic.publish(7), loop).result()
            loop.call_soon_threadsafe(topic.complete)

        async with serving(service) as (_, peer), peer.subscribe("topic", type=int) as stream:
            await topic.wait_subscribers()
            await asyncio.to_thread(elsewhere)
            assert [number async for number in stream] == [7]

    run(main())


def test_a_second_loop_cannot_subscribe() -> None:
    """While the first one serves subscribers; afterwards it may."""

    async def read() -> list[int]:
        async with aio.subscribe(topic) as stream:
            asyncio.get_running_loop().call_soon(topic.complete)
            return [number async for number in stream]

    topic: aio.Topic[int] = aio.Topic(retain=1)

    async def main() -> None:
        await topic.publish(5)
        async with aio.subscribe(topic) as stream:
            assert await anext(stream) == 5
            with pytest.raises(UsageError, match="Make a topic for each loop"):
                await asyncio.to_thread(asyncio.run, read())

    run(main())
    assert asyncio.run(read()) == [5]
