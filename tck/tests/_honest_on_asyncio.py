"""Publishers, a subscriber and a processor whose tasks live in asyncio. They keep the rules, and no
check may fail for them.

The first is an async generator of asyncio as penstock publishes it. The others are written as a
library on asyncio writes them, without penstock's own classes.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

from penstock_tck import ProcessorVerification, PublisherVerification, SubscriberVerification

import penstock
from penstock import aio
from penstock.api import UNBOUNDED, IllegalDemand, Publisher, Subscriber, Subscription

tck_verifies_nothing = "these are run by run_checks"


async def numbers(count: int) -> AsyncIterator[int]:
    for number in range(count):
        if number % 3 == 0:
            await asyncio.sleep(0.001)
        yield number


async def endless() -> AsyncIterator[int]:
    number = 0
    while True:
        await asyncio.sleep(0)
        yield number
        number += 1


class GeneratorOfAsyncio(PublisherVerification):
    """`penstock.aio.from_asyncio`."""

    on_asyncio = True
    settle_seconds = 1.0
    max_elements = 300
    model_seeds = 20

    def create_publisher(self, elements: int) -> Publisher[int]:
        source = aio.from_asyncio(endless if elements == UNBOUNDED else lambda: numbers(elements))
        return source.publisher(self.env.nursery)


class TaskSubscription(Subscription):
    """One subscriber of `TaskPublisher`: a task of asyncio that waits for demand."""

    def __init__(self, subscriber: Subscriber[int], count: int) -> None:
        self._subscriber: Subscriber[int] | None = subscriber
        self._count = count
        self._demand = 0
        self._asked = asyncio.Event()
        self._refused = False

    def start(self) -> None:
        self._signal("on_subscribe", self)
        self._task = asyncio.get_running_loop().create_task(self._run())

    def request(self, n: int, /) -> None:
        if type(n) is not int or n < 1:
            self._refused = True
        else:
            self._demand = min(UNBOUNDED, self._demand + n)
        self._asked.set()

    def cancel(self) -> None:
        self._subscriber = None
        self._asked.set()

    async def _run(self) -> None:
        position = 0
        while self._subscriber is not None:
            if self._refused:
                self._end("on_error", IllegalDemand("a demand below 1 (rule 3.9)"))
            elif position == self._count:
                self._end("on_complete")
            elif self._demand:
                if self._demand < UNBOUNDED:
                    self._demand -= 1
                self._signal("on_next", position)
                position += 1
                if position % 50 == 0:
                    await asyncio.sleep(0)
            else:
                self._asked.clear()
                await self._asked.wait()

    def _end(self, name: str, *arguments: Any) -> None:
        with suppress(Exception):  # it is over in any case
            getattr(self._subscriber, name)(*arguments)
        self._subscriber = None

    def _signal(self, name: str, *arguments: Any) -> None:
        try:
            getattr(self._subscriber, name)(*arguments)
        except Exception:  # a subscriber that raises has cancelled (rule 2.13)
            self._subscriber = None


class TaskPublisher(Publisher[int]):
    """A publisher of a library on asyncio."""

    subscription_class = TaskSubscription

    def __init__(self, count: int) -> None:
        self._count = count

    def subscribe(self, subscriber: Subscriber[int], /) -> None:
        if subscriber is None:
            raise TypeError("subscribe(None)")
        self.subscription_class(subscriber, self._count).start()


class TasksOfAsyncio(PublisherVerification):
    """A publisher that is written by hand, with a task for each subscription."""

    on_asyncio = True
    publisher_class = TaskPublisher
    max_elements = 300
    model_seeds = 20

    def create_publisher(self, elements: int) -> Publisher[int]:
        return self.publisher_class(elements)


class QueueSubscriber(Subscriber[Any]):
    """A task of asyncio takes the elements out of a queue, and asks for more when half of them are
    taken.
    """

    def __init__(self) -> None:
        self._queue: asyncio.Queue[Any] = asyncio.Queue()  # bounded by the demand
        self._subscription: Subscription | None = None

    def on_subscribe(self, subscription: Subscription, /) -> None:
        if subscription is None:
            raise TypeError("on_subscribe(None)")
        if self._subscription is not None:
            subscription.cancel()
            return
        self._subscription = subscription
        self._task = asyncio.get_running_loop().create_task(self._run(subscription))

    def on_next(self, element: Any, /) -> None:
        if element is None:
            raise TypeError("on_next(None)")
        self._queue.put_nowait(element)

    def on_error(self, error: Exception, /) -> None:
        if not isinstance(error, Exception):
            raise TypeError(f"on_error({error!r})")
        self._stop()

    def on_complete(self) -> None:
        self._stop()

    def _stop(self) -> None:
        if self._subscription is not None:
            self._task.cancel()

    async def _run(self, subscription: Subscription) -> None:
        subscription.request(8)
        taken = 0
        while True:
            await self._queue.get()
            taken += 1
            if taken % 4 == 0:
                await asyncio.sleep(0)
                subscription.request(4)


class QueueOfAsyncio(SubscriberVerification):
    """A subscriber whose task lives in asyncio."""

    on_asyncio = True
    model_seeds = 20

    def create_subscriber(self) -> Subscriber[int]:
        return QueueSubscriber()

    def create_element(self, index: int) -> int:
        return index


async def doubled(number: int) -> int:
    await asyncio.sleep(0)
    return number


class PipeWithAsyncio(ProcessorVerification):
    """An operator that awaits a function of asyncio for each element."""

    on_asyncio = True
    settle_seconds = 1.0
    max_elements = 100
    model_seeds = 10
    errors_overtake = True  # of elements that wait for the function

    def connect(self, upstream: Publisher[int]) -> Publisher[int]:
        async def through(number: int) -> int:
            return await aio.in_asyncio(doubled, number)

        return penstock.from_publisher(upstream).map(through).publisher(self.env.nursery)

    def create_element(self, index: int) -> int:
        return index
