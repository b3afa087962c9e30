"""The rules for publishers over a stream of `penstock.aio`: a real loop of asyncio, a real socket,
a stream with manual demand.

Rules of this file

* The kit runs on trio. A task of trio runs the loop of asyncio in its own thread, pass by pass, and
  waits while the loop has nothing to do.
* These checks take 15 s of processor time, so `nox -s conformance` runs them,
  and `nox -s tck` does not.
* The subscriber of a check gets each element that the stream yields,
  and its requests are those of the stream.
"""

import asyncio
import selectors

import trio

import penstock
from penstock import aio
from penstock.api import IllegalDemand, StreamState, Subscription

# The module is imported: the kit would also collect its class here.
from tests.tck import _remote_publishers


class _Idle(selectors.DefaultSelector):
    """Waits for nothing: where the loop would wait, it stops."""

    loop = None

    def select(self, timeout=None):
        events = super().select(0)
        if not events and (timeout is None or timeout > 0):
            self.loop.stop()
        return events


class _Loop:
    """A loop of asyncio that a task of trio runs."""

    def __init__(self):
        self.selector = _Idle()
        self.loop = self.selector.loop = asyncio.SelectorEventLoop(self.selector)
        self._waiting = None
        self._is_over = False

    def wake(self):
        """Let the loop run: something outside of it has changed."""
        if self._waiting is not None:
            self._waiting.cancel()

    def end(self):
        """End `run`."""
        self._is_over = True
        self.wake()

    async def run(self):
        """Run the loop until `end`. A cancel does not end it:
        the client says goodbye after that.
        """
        while not self._is_over:
            self.loop.run_forever()
            with trio.CancelScope(shield=True) as self._waiting:
                await trio.lowlevel.wait_readable(self.selector.fileno())
            await trio.lowlevel.cancel_shielded_checkpoint()

    async def until(self, coroutine):
        """Return what a coroutine of asyncio returns."""
        task, done = self.loop.create_task(coroutine), trio.Event()
        task.add_done_callback(lambda _: done.set())
        self.wake()
        await done.wait()
        return task.result()


class _ReadByAsyncio(Subscription):
    """One subscription, whose elements a task of asyncio reads."""

    def __init__(self, loop, peer, subscriber):
        self._loop = loop
        self._subscriber = subscriber
        self._stream = peer.subscribe("numbers", demand=0, serializer="json")
        subscriber.on_subscribe(self)
        self._task = loop.loop.create_task(self._read())
        loop.wake()

    def request(self, n):
        try:
            self._stream.request(n)
        except IllegalDemand as error:
            self._stream.cancel()
            self._fail(error)
        self._loop.wake()

    def cancel(self):
        self._subscriber = None
        self._stream.cancel()
        self._loop.wake()

    async def _read(self):
        try:
            async with self._stream:
                async for element in self._stream:
                    if self._subscriber is not None:
                        self._subscriber.on_next(element)
            if self._stream.statistics().state is StreamState.COMPLETED:
                subscriber, self._subscriber = self._subscriber, None
                if subscriber is not None:
                    subscriber.on_complete()
        except penstock.PenstockError as error:
            self._fail(error)

    def _fail(self, error):
        subscriber, self._subscriber = self._subscriber, None
        if subscriber is not None:
            subscriber.on_error(error)


class _AioSource(penstock.Source):
    """A publisher of the peer of a client on asyncio."""

    def __init__(self, loop, peer):
        self._loop = loop
        self._peer = peer

    def attach(self, subscriber, scope):
        _ReadByAsyncio(self._loop, self._peer, subscriber)


class OverAsyncio(_remote_publishers.OverMemory):
    """The publisher of a server of penstock, through a stream of `penstock.aio` over TCP."""

    url = "tcp://127.0.0.1:0"

    def listening(self):
        return (
            self.url,
            penstock.spi.TransportOptions(),
            penstock.spi.TransportOptions(),
            _remote_publishers.REGISTRY,
        )

    async def _connect(self, address, options, registry, task_status):
        loop = _Loop()
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(loop.run)
                block = aio.connect(str(address), extensions=())
                peer = await loop.until(block.__aenter__())
                await loop.until(peer.wait_accepted())
                task_status.started(self.bound(_AioSource(loop, peer)))
                try:
                    await trio.sleep_forever()
                finally:
                    with trio.CancelScope(shield=True):
                        await loop.until(block.__aexit__(None, None, None))
                    loop.end()
        finally:
            loop.loop.close()
