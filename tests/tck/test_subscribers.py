"""The test kit over our subscribers: streams of either demand, alone and behind `subscribe`, and callbacks. (Mailboxes: `test_draft.py`.)

A `ManualSubscriber` is no subject here: it records what breaks the rules, and does nothing by itself, not even what rule 2.5 asks for.
"""

import trio
from penstock_tck import SubscriberVerification

import penstock
from penstock import CallbackSubscriber, Stream


class _Read(SubscriberVerification):
    """A stream that a task reads to its end."""

    abstract = True
    reports = True
    dispatches = True
    demand = 4

    def create_subscriber(self):
        self.stream = Stream(demand=self.demand)
        self.env.nursery.start_soon(self.read, self.stream)
        return self.stream

    async def read(self, stream):
        try:
            async for element in stream:
                self.saw_next(element)
        except (ValueError, penstock.RuleViolation) as error:
            self.saw_error(error)
        else:
            if stream.statistics().state is not penstock.StreamState.CANCELLED:
                self.saw_complete()

    def trigger_cancel(self):
        self.stream.cancel()

    def trigger_shutdown(self):
        self.stream.cancel()


class StreamThatRenewsItsDemand(_Read):
    """The usual stream."""


class StreamOfDemandOne(_Read):
    """A stream with one element under way at a time."""

    demand = 1


class StreamByHand(_Read):
    """A stream that is told what to request."""

    demand = 0

    def trigger_request(self, n):
        self.stream.request(n)


class StreamByTheBatch(_Read):
    """The usual stream, read by the list."""

    async def read(self, stream):
        try:
            async for batch in stream.batches():
                for element in batch:
                    self.saw_next(element)
        except (ValueError, penstock.RuleViolation) as error:
            self.saw_error(error)
        else:
            if stream.statistics().state is not penstock.StreamState.CANCELLED:
                self.saw_complete()


class SubscribeBlock(_Read):
    """What subscribes to a foreign publisher in an `async with subscribe(...)`: leaving the block is its shutdown."""

    async def attach(self, upstream):
        self.left = trio.Event()
        await self.env.nursery.start(self.block, upstream)
        await self.settle()
        self.subscriber = self.signal_target(upstream)

    async def block(self, upstream, task_status):
        async with penstock.subscribe(
            penstock.from_publisher(upstream), demand=self.demand, on_violation=lambda error: None
        ) as self.stream:
            self.env.nursery.start_soon(self.read, self.stream)
            task_status.started()
            await self.left.wait()

    def trigger_shutdown(self):
        self.left.set()


class SubscribeBlockByHand(SubscribeBlock):
    """The same with demand that is given from outside."""

    demand = 0

    def trigger_request(self, n):
        self.stream.request(n)


class Callbacks(SubscriberVerification):
    """Plain functions, called inside the signals."""

    reports = True
    demand = 4

    def callbacks(self, handler):
        return CallbackSubscriber(
            handler, error=self.saw_error, complete=self.saw_complete, demand=self.demand, on_violation=lambda error: None
        )

    def create_subscriber(self):
        return self.callbacks(self.saw_next)

    def create_raising_subscriber(self, error):
        def handler(element):
            raise error

        return self.callbacks(handler)

    def trigger_cancel(self):
        self.subscriber.cancel()

    def trigger_shutdown(self):
        self.subscriber.cancel()


class CallbacksOfDemandOne(Callbacks):
    """The same with one element under way at a time."""

    demand = 1
