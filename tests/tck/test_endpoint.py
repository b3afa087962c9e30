"""The test kit over the clients without trio:
what `penstock.blocking` and `penstock.aio` share holds the rules.

Rules of this file

* The kit runs on trio, and an `Endpoint` does no I/O: here a task of trio carries its bytes. So the
  rows for publishers run over the subscriptions of an endpoint, and those for subscribers over the
  consumer's end that both clients read.
* The loops of both clients around these objects are tested in tests/blocking and tests/aio.
  `nox -s conformance` runs the kit over a stream of `penstock.aio`, with a loop of asyncio and a
  socket (whole_aio_stream.py).
"""

import json

import trio
from penstock_tck import SubscriberVerification

import penstock
from penstock.api import Subscriber, Subscription
from penstock.client import Endpoint, endpoint_settings
from penstock.reader import StreamBuffer
from penstock.spi import parse_url

# The module is imported: the kit would also collect its class here.
from tests.tck import _remote_publishers

SETTINGS = endpoint_settings("tcp://127.0.0.1:1", extensions=())


class _Loading(Subscriber, Subscription):
    """Turns JSON into elements, and asks nothing after the end."""

    def __init__(self, subscriber):
        self._subscriber = subscriber
        self._upstream = None

    def on_subscribe(self, subscription):
        self._upstream = subscription
        self._subscriber.on_subscribe(self)

    def on_next(self, element):
        if self._subscriber is not None:
            self._subscriber.on_next(json.loads(element))

    def on_error(self, error):
        subscriber, self._subscriber = self._subscriber, None
        if subscriber is not None:
            subscriber.on_error(error)

    def on_complete(self):
        subscriber, self._subscriber = self._subscriber, None
        if subscriber is not None:
            subscriber.on_complete()

    def request(self, n):
        self._upstream.request(n)

    def cancel(self):
        self._subscriber = None
        self._upstream.cancel()


class _EndpointSource(penstock.Source):
    """A publisher of the peer of an endpoint."""

    def __init__(self, endpoint):
        self._endpoint = endpoint

    def attach(self, subscriber, scope):
        self._endpoint.subscribe("numbers", _Loading(subscriber))


class OverAnEndpoint(_remote_publishers.OverMemory):
    """The publisher of a server of penstock, through the endpoint
    that the clients without trio drive.
    """

    url = "memory://endpoint{}"

    async def _connect(self, address, options, registry, task_status):
        async with trio.open_nursery() as nursery:
            connection = await _remote_publishers.REGISTRY.transport("memory").connect(
                parse_url(str(address)), options=options, nursery=nursery
            )
            await connection.handshake(nursery)
            endpoint = Endpoint(SETTINGS, connection.peer, trio.current_time())
            queued = trio.Event()

            def wake():
                queued.set()

            async def send():
                nonlocal queued
                while True:
                    await queued.wait()
                    queued = trio.Event()
                    while endpoint.has_output:
                        await connection.send(endpoint.take())

            endpoint.wake = wake
            wake()
            nursery.start_soon(send)
            task_status.started(self.bound(_EndpointSource(endpoint)))
            while data := await connection.receive():
                endpoint.receive(bytes(data), trio.current_time())


class _ReadBuffer(SubscriberVerification):
    """The consumer's end of both clients, read by a task of trio to its end."""

    abstract = True
    reports = True
    dispatches = True
    demand = 4

    def create_subscriber(self):
        self.buffer = StreamBuffer(demand=self.demand)
        self.env.nursery.start_soon(self.read, self.buffer)
        return self.buffer

    async def readable(self, buffer):
        """Wait. Return whether there is an element; raise the failure of the stream."""
        while True:
            await trio.lowlevel.checkpoint()
            if not buffer._arrived:
                buffer._renew()
            if buffer._arrived:
                return True
            if buffer._is_readable:
                failure = buffer._take_failure()
                if failure is not None:
                    raise failure
                return False
            woken = trio.Event()
            buffer._reader = woken.set
            await woken.wait()

    async def read(self, buffer):
        try:
            while await self.readable(buffer):
                buffer._take_slice()
                for element in buffer._slice:
                    self.saw_next(element)
            if buffer.statistics().state is not penstock.StreamState.CANCELLED:
                self.saw_complete()
        except (ValueError, penstock.RuleViolation) as error:
            self.saw_error(error)

    def trigger_cancel(self):
        self.buffer.cancel()

    def trigger_shutdown(self):
        self.buffer.cancel()


class BufferWithAutomaticDemand(_ReadBuffer):
    """The usual settings."""


class BufferOfDemandOne(_ReadBuffer):
    """One outstanding element."""

    demand = 1


class BufferWithManualDemand(_ReadBuffer):
    """It requests only on command."""

    demand = 0

    def trigger_request(self, n):
        self.buffer.request(n)


class BufferReadInBatches(_ReadBuffer):
    """It is read in batches."""

    async def read(self, buffer):
        try:
            while await self.readable(buffer):
                for element in buffer._take_batch():
                    self.saw_next(element)
            if buffer.statistics().state is not penstock.StreamState.CANCELLED:
                self.saw_complete()
        except (ValueError, penstock.RuleViolation) as error:
            self.saw_error(error)
