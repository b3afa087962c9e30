"""One transport connection of asyncio with its endpoint. It has no task: asyncio calls it, and a
timer of the loop does what is due.

Rules of this file:

* Bytes that asyncio has not sent yet bound what is taken from the endpoint:
  while the transport is full, nothing is taken.
* Decoding gives the loop a turn after `TURN_SECONDS`.
  Until the rest is decoded the transport does not read on.
* A transport that is closed in good order sends what it has;
  after a loss it is aborted, because nothing takes the bytes.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final, cast

import attrs

from penstock.aio._publisher import TaskPublisher
from penstock.api import PenstockError
from penstock.client import Endpoint, EndpointSettings, Then
from penstock.reader import TURN_SECONDS
from penstock.session import SendingStream
from penstock.spi import (
    LiveStream,
    PeerIdentity,
    PeerStatistics,
    certificate_of,
    set_tcp_options,
    tcp_identity,
    unix_identity,
)

MESSAGES_PER_LOOK: Final = 64
"""Messages that are decoded between two looks at the clock."""


class AsyncioConnection(asyncio.Protocol):
    """One connection."""

    endpoint: Endpoint
    """Made when the transport is there."""

    def __init__(self, settings: EndpointSettings, loop: asyncio.AbstractEventLoop) -> None:
        self._settings = settings
        self._loop = loop
        self._transport: asyncio.Transport
        self._is_full = False  # asyncio has more bytes than it wants
        self._is_flushing_soon = False
        self._written = 0
        self._timer: asyncio.TimerHandle | None = None
        self._ticks_at = 0.0  # when the timer is due: a handle of uvloop may not tell
        self._waiters: list[asyncio.Future[None]] = []
        self._publishers: set[TaskPublisher] = set()
        self._awaiting: set[asyncio.Task[None]] = set()
        self._closed: asyncio.Future[None] = loop.create_future()
        self._failure: PenstockError | None = None  # why it has no endpoint

    # --- for asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin: the transport is there, and the handshake of TLS is done."""
        self._transport = cast("asyncio.Transport", transport)
        tls = transport.get_extra_info("ssl_object")
        try:
            self.endpoint = Endpoint(
                self._settings,
                _identity(self._settings, transport),
                self._loop.time(),
                agreed=None if tls is None else tls.selected_alpn_protocol(),
                publish=self._publish,
                await_with=self._await_with,
            )
        except PenstockError as error:
            # Raised from here, asyncio would only log it, and keep the transport.
            self._failure = error
            self._transport.abort()
            return
        self.endpoint.wake = self._flush_soon
        self.endpoint.on_change = self._on_change
        self.endpoint.on_earlier = self._tick_before
        self.flush()
        self._tick()

    def data_received(self, data: bytes) -> None:
        """Act on received bytes."""
        self._feed(data)

    def eof_received(self) -> None:
        """End the connection: the peer sends nothing more."""
        self.endpoint.end_of_input()

    def connection_lost(self, exc: Exception | None) -> None:
        """End the connection: the transport is closed."""
        if self._failure is None:
            self.endpoint.end_of_input(exc if isinstance(exc, OSError) else None)
        if not self._closed.done():
            self._closed.set_result(None)

    def pause_writing(self) -> None:
        """Take nothing from the endpoint until `resume_writing`."""
        self._is_full = True

    def resume_writing(self) -> None:
        """Send again."""
        self._is_full = False
        self._flush_soon()

    # --- for the peer

    async def check_made(self) -> None:
        """Raise why the connection could not be made, if it could not, when it is closed."""
        if self._failure is not None:
            await self._closed
            raise self._failure

    def flush(self) -> None:
        """Hand what waits to asyncio, as far as it wants more."""
        endpoint, transport = self.endpoint, self._transport
        if transport.is_closing():
            return
        while endpoint.has_output and not self._is_full:
            data = endpoint.take()
            self._written += len(data)
            transport.write(data)
        if transport.get_write_buffer_size():
            self._tick_before(self._check_stall())
        if self._waiters and endpoint.has_room:
            self._notify()

    async def wait_opened(self) -> None:
        """Wait until both sides have said hello, or the connection is over."""
        await self._wait_until(lambda: self.endpoint.opened_at is not None)

    async def wait_room(self) -> None:
        """Wait until a request may be queued, or the connection is over."""
        await self._wait_until(lambda: self.endpoint.has_room)

    async def wait_over(self) -> None:
        """Wait until the connection is over."""
        await self._wait_until(lambda: False)

    @property
    def is_quiet(self) -> bool:
        """Nothing runs, and the system has taken every byte."""
        return (
            self.endpoint.is_quiet
            and not self._publishers
            and not self._transport.get_write_buffer_size()
        )

    def statistics(self) -> PeerStatistics:
        """Return the counts of the connection, and the bytes that it holds now."""
        return self.endpoint.statistics(
            self._loop.time(), unsent=self._transport.get_write_buffer_size()
        )

    def streams(self) -> list[LiveStream]:
        """Return a record for each stream and request that is open now."""
        return self.endpoint.streams(
            self._loop.time(), unsent=self._transport.get_write_buffer_size()
        )

    async def leave(self) -> None:
        """Say goodbye, wait for the answer as long as `Limits.goodbye_timeout` allows, close,
        and end all publishers.
        """
        endpoint = self.endpoint
        try:
            endpoint.close()
            self._stop_awaiting()
            self.flush()
            self._tick()  # the goodbye has its deadline from now on
            await self._wait_until(lambda: endpoint.has_left)
            await self._stop_publishers()
            self.flush()  # the answer to a goodbye of the peer
            if endpoint.has_parted:
                self._transport.close()
                await asyncio.wait((self._closed,), timeout=self._settings.options.close_timeout)
        finally:
            # It is aborted also if a cancellation ends the wait.
            self._transport.abort()
            if self._timer is not None:
                self._timer.cancel()
            endpoint.release()
            self._stop_awaiting()
            for publisher in self._publishers:
                publisher.task.cancel()
        await self._stop_publishers()
        await self._closed  # asyncio closes the socket in its next pass

    # --- inside

    async def _wait_until(self, is_reached: Callable[[], bool]) -> None:
        while not is_reached() and not self.endpoint.is_over:
            waiter = self._loop.create_future()
            self._waiters.append(waiter)
            await waiter

    def _feed(self, data: bytes) -> None:
        endpoint, loop = self.endpoint, self._loop
        if endpoint.is_over:
            return
        now = loop.time()
        more = endpoint.receive(data, now, most=MESSAGES_PER_LOOK)
        ends = now + TURN_SECONDS
        while more:
            now = loop.time()
            if now >= ends:
                self._transport.pause_reading()
                loop.call_soon(self._go_on)
                break
            more = endpoint.receive(b"", now, most=MESSAGES_PER_LOOK)
        if endpoint.has_left and not self._transport.is_closing():
            self._transport.abort()
        self.flush()
        self._tick_before(endpoint.tick(now))

    def _go_on(self) -> None:
        """Decode what is left of the last bytes, and read on."""
        if not self._transport.is_closing():
            self._transport.resume_reading()
        self._feed(b"")

    def _publish(self, endpoint: Endpoint, stream: SendingStream) -> None:
        publisher = TaskPublisher(
            self._settings.publishers[stream.target], stream, self._settings.on_violation
        )
        self._publishers.add(publisher)
        publisher.task.add_done_callback(lambda _: self._publishers.discard(publisher))
        stream.on_subscribe(publisher)

    def _await_with(self, awaitable: Awaitable[Any], then: Then) -> None:
        task = self._loop.create_task(self._await(awaitable, then), name="penstock examination")
        self._awaiting.add(task)
        task.add_done_callback(self._awaiting.discard)

    async def _await(self, awaitable: Awaitable[Any], then: Then) -> None:
        result, failure = None, None
        try:
            result = await awaitable
        except Exception as error:  # boundary: the program's function
            failure = error
        then(result, failure)
        self._tick()

    def _stop_awaiting(self) -> None:
        for task in self._awaiting:
            task.cancel()

    async def _stop_publishers(self) -> None:
        """Wait until each publisher has stopped. The end of the session has cancelled them, and
        what extensions waited for.
        """
        while tasks := [publisher.task for publisher in self._publishers] + [*self._awaiting]:
            await asyncio.wait(tasks)

    def _flush_soon(self) -> None:
        if not self._is_flushing_soon:
            self._is_flushing_soon = True
            self._loop.call_soon(self._flush_now)

    def _flush_now(self) -> None:
        self._is_flushing_soon = False
        self.flush()

    def _on_change(self) -> None:
        endpoint = self.endpoint
        if endpoint.is_over:
            self._stop_awaiting()
            self.flush()  # the answer to a goodbye of the peer
            if endpoint.has_parted:
                self._transport.close()
            else:
                self._transport.abort()
        self._notify()

    def _notify(self) -> None:
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    # --- time

    def _tick(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        due = self.endpoint.tick(self._loop.time())
        self.flush()
        self._tick_before(due)
        self._tick_before(self._check_stall())

    def _check_stall(self) -> float | None:
        unsent = self._transport.get_write_buffer_size()
        return self.endpoint.check_stall(self._written - unsent, unsent, self._loop.time())

    def _tick_before(self, due: float | None) -> None:
        """Let a tick come at that time at the latest."""
        if (
            due is None
            or self.endpoint.is_over
            or (self._timer is not None and self._ticks_at <= due)
        ):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self._ticks_at = self._loop.call_at(due, self._tick), due


def _identity(settings: EndpointSettings, transport: asyncio.BaseTransport) -> PeerIdentity:
    sock: Any = transport.get_extra_info("socket")
    if settings.url.transport == "unix":
        return unix_identity(sock)
    set_tcp_options(sock, settings.options)
    peer = tcp_identity(transport.get_extra_info("peername") or ("", 0))
    tls = transport.get_extra_info("ssl_object")
    return peer if tls is None else attrs.evolve(peer, certificate=certificate_of(tls))
