"""The test kit over penstock's subscribers: streams with both kinds of demand, `subscribe` blocks,
and callbacks. Mailboxes: test_draft.py.

`ManualSubscriber` is not verified here.
It records broken rules and reacts to none of them, not even to rule 2.5.
"""

import trio
from penstock_tck import SubscriberVerification

import penstock
from penstock import CallbackSubscriber, Stream


class _ReadStream(SubscriberVerification):
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


class StreamWithAutomaticDemand(_ReadStream):
    """A stream with the usual settings."""


class StreamOfDemandOne(_ReadStream):
    """A stream with one outstanding element."""

    demand = 1


class StreamWithManualDemand(_ReadStream):
    """A stream that requests only on command."""

    demand = 0

    def trigger_request(self, n):
        self.stream.request(n)


class StreamReadInBatches(_ReadStream):
    """A stream that is read in batches."""

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


class SubscribeBlock(_ReadStream):
    """An `async with subscribe(...)` block over a foreign publisher.
    Leaving the block is its shutdown.
    """

    async def attach(self, upstream):
        self.leave_block = trio.Event()
        await self.env.nursery.start(self.block, upstream)
        await self.settle()
        self.subscriber = self.signal_target(upstream)

    async def block(self, upstream, task_status):
        async with penstock.subscribe(
            penstock.from_publisher(upstream), demand=self.demand, on_violation=lambda error: None
        ) as self.stream:
            self.env.nursery.start_soon(self.read, self.stream)
            task_status.started()
            await self.leave_block.wait()

    def trigger_shutdown(self):
        self.leave_block.set()


class SubscribeBlockWithManualDemand(SubscribeBlock):
    """The same with requests from outside."""

    demand = 0

    def trigger_request(self, n):
        self.stream.request(n)


class Callbacks(SubscriberVerification):
    """Plain functions that are called inside the signals."""

    reports = True
    demand = 4

    def callbacks(self, handler):
        return CallbackSubscriber(
            handler,
            error=self.saw_error,
            complete=self.saw_complete,
            demand=self.demand,
            on_violation=lambda error: None,
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
    """The same with one outstanding element."""

    demand = 1
