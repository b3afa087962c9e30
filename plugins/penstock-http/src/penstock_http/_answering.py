"""The effect of a request, and the wait for its answer: the same for every version of HTTP.

Rules of this file:

* A front end reads requests and writes answers. It gives an `Outlet` with each request.
* An answer with elements counts as lost if it was not written to its end.
* A request that waits is looked at again when its subscription reports something,
  when its time has come, and in a shutdown.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Final

import trio

from penstock.api import ConnectionLost, PenstockError, Rejected, quoted_text
from penstock.spi import ConnectionHost, PeerIdentity
from penstock_http._engine import Exchange, Subscribe, Waiting, refused
from penstock_http._exchanges import Events, Poll, Pushes, StreamedBatch
from penstock_http._heads import Head
from penstock_http._messages import TRACE, Holder, Request, Response, answer, refusal
from penstock_http._outlet import GONE, Outlet
from penstock_http._relay import Relays
from penstock_http._site import Site

_TRACE: Final = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}", re.ASCII)
_SECRET: Final = re.compile(r"^/s/[^/]*")

SMALL: Final = 4 << 10
"""Bytes of an answer that is not counted while it is written: it costs less than its connection."""


class Answering:
    """The requests of one connection, or of one application: many may wait at the same time."""

    def __init__(self, host: ConnectionHost, site: Site, *, is_loopback: bool) -> None:
        self._host = host
        self._site = site
        self._is_loopback = is_loopback
        # One for each request that waits; the front end bounds them.
        self._waits: set[_Wait] = set()
        self._idle: trio.Event | None = None

    def on_draining(self) -> None:
        """Let every request that waits look again: the server shuts down."""
        for wait in self._waits:
            wait.wake()

    async def wait_idle(self) -> None:
        """Wait until no request waits any more. Checkpoints."""
        await trio.lowlevel.checkpoint()
        while self._waits:
            self._idle = trio.Event()
            await self._idle.wait()

    async def answer(self, head: Head, peer: PeerIdentity, outlet: Outlet) -> None:
        """Answer a request. Raises one of `GONE`."""
        began = trio.current_time()
        if self._site.settings.proxies.networks:
            peer = self._site.settings.proxies.client_of(head.request, peer)
        # Looked at here, and not in a method: a poll of twenty elements takes few calls.
        relays = self._site.relays
        worker = "" if relays is None else self._site.worker_of(head.request)
        status = await (
            self._pass_on(relays, worker, head, peer, outlet)
            if relays is not None and worker
            else self.answer_here(head, peer, outlet)
        )
        if self._host.logs_access:
            self._log(head.request, peer, status, trio.current_time() - began)

    # --- what it leads to

    async def _pass_on(
        self, relays: Relays, worker: str, head: Head, peer: PeerIdentity, outlet: Outlet
    ) -> int:
        """Let the worker answer that holds the subscription."""
        response = self._site.judge(
            head, is_loopback=self._is_loopback, draining=self._host.is_draining
        )
        if response is not None:
            return await _write(response, outlet)
        wait = _Wait(self._host, outlet)
        self._waits.add(wait)
        try:
            return await relays.pass_on(worker, head, peer, outlet, self._host, wait.until_gone)
        finally:
            self._waits.discard(wait)
            if self._idle is not None:
                self._idle.set()

    async def answer_here(self, head: Head, peer: PeerIdentity, outlet: Outlet) -> int:
        """Answer a request in this process, and return the status. Raises one of `GONE`."""
        exchange = await self._receive(head, peer)
        if isinstance(exchange, Response):
            return await _write(exchange, outlet)
        wait = _Wait(self._host, outlet)
        exchange.begin(wait.wake)
        self._waits.add(wait)
        try:
            if isinstance(exchange, Poll):
                return await self._poll(exchange, outlet, wait)
            if isinstance(exchange, Pushes):
                return await self._push(exchange, outlet, wait)
            return await self._stream(exchange, outlet, wait)
        finally:
            self._waits.discard(wait)
            if self._idle is not None:
                self._idle.set()
            exchange.release(trio.current_time())

    async def _receive(self, head: Head, peer: PeerIdentity) -> Response | Waiting:
        request, engine = head.request, self._site.engine
        response = self._site.judge(
            head, is_loopback=self._is_loopback, draining=self._host.is_draining
        )
        if response is None and request.path in self._site.pages.paths:
            response = await self._site.pages.answer(
                request, engine.credentials_of(request), peer, self._host
            )
        if response is None and engine.needs_credentials(request, peer.principal):
            response = await self._check_owner(request, peer)
        if response is not None:
            return response
        exchange: Exchange = engine.receive(request, trio.current_time())
        return (
            await self._subscribe(exchange, request, peer)
            if isinstance(exchange, Subscribe)
            else exchange
        )

    async def _subscribe(
        self, subscribe: Subscribe, request: Request, peer: PeerIdentity
    ) -> Response:
        if self._host.is_draining:
            return answer(503, ("Retry-After", "1"), text="the server shuts down")
        subscription, reservation, shown = subscribe.subscription, None, peer.principal
        try:
            peer = await self._host.authenticate(*self._site.engine.credentials_of(request), peer)
            # The elements of a stream that has ended wait for the client, and must count too.
            reservation = subscription.reservation = self._host.reserve(
                peer, subscription.kept_bytes, subscription.cut
            )
            await self._host.open(
                subscribe.name,
                peer,
                subscription,
                protocol="http",
                collects=True,
                reservation=reservation,
                trace=_trace_of(request),
            )
            response = self._site.engine.opened(
                subscribe, request, peer.principal, reservation.end, shown=shown
            )
            reservation = None
        except PenstockError as error:
            return refused(error)
        finally:
            if reservation is not None:
                reservation.end()
        self._site.watch(self._host)
        return response

    async def _check_owner(self, request: Request, peer: PeerIdentity) -> Response | None:
        try:
            peer = await self._host.authenticate(*self._site.engine.credentials_of(request), peer)
        except Rejected as error:
            return refused(error)
        # The answer to a wrong secret: another principal must not learn that this one is right.
        return (
            None
            if self._site.engine.belongs_to(request, peer.principal)
            else refusal(404, "no such subscription")
        )

    # --- requests that wait

    async def _poll(self, poll: Poll, outlet: Outlet, wait: "_Wait") -> int:
        while True:
            async with outlet.bodies:
                response = poll.advance(trio.current_time(), draining=self._host.is_draining)
                if response is not None:
                    return await _write(response, outlet)
            await wait.until(poll.due)
            wait.check()

    async def _push(self, pushes: Pushes, outlet: Outlet, wait: "_Wait") -> int:
        await outlet.begin(pushes.head)
        while not pushes.is_over:
            async with outlet.bodies:
                push = pushes.advance(trio.current_time(), draining=self._host.is_draining)
                if push is not None and not await _write_push(*push, outlet):
                    break
            if push is None and not pushes.is_over:
                await wait.until(pushes.due)
        await outlet.end()
        return pushes.head.status

    async def _stream(self, stream: StreamedBatch | Events, outlet: Outlet, wait: "_Wait") -> int:
        response = stream.first(trio.current_time())
        if response is not None:
            return await _write(response, outlet)
        outlet.outcome = stream
        try:
            await outlet.begin(stream.head)
            if await self._write_parts(stream, outlet, wait):
                outlet.on_written()
        finally:  # after a cancel too
            if not outlet.is_written:
                stream.on_lost()
                if self._site.settings.ends_lost:
                    stream.end()
        if wait.is_gone:
            wait.check()
        return stream.head.status

    async def _write_parts(
        self, stream: StreamedBatch | Events, outlet: Outlet, wait: "_Wait"
    ) -> bool:
        """Write the parts of a body and its end; return False if the client has gone."""
        while not wait.is_gone:
            async with outlet.bodies:
                part = stream.advance(
                    trio.current_time(), outlet.acknowledged, draining=self._host.is_draining
                )
                if part is None:
                    await outlet.end()
                    return True
                if part:
                    with (
                        _held(stream.holder, len(part), -1) if len(part) > SMALL else nullcontext()
                    ):
                        await outlet.write_part(part, is_last=stream.is_over)
                    if stream.is_over:
                        return True
            if not part:
                await wait.until(stream.due)
        return False

    # --- the log

    def _log(self, request: Request, peer: PeerIdentity, status: int, seconds: float) -> None:
        # The secret of a subscription opens it, and a query may have a token: neither is written.
        path = quoted_text(_SECRET.sub("/s/...", request.path))
        method = quoted_text(request.method)
        self._host.write_access(
            peer, "http", f"method={method} path={path} status={status} seconds={seconds:.3f}"
        )


class _Wait:
    """One request that waits. It has no task beside its own: 10,000 of them may wait."""

    def __init__(self, host: ConnectionHost, outlet: Outlet) -> None:
        self._host = host
        self._outlet = outlet
        self._scope: trio.CancelScope | None = None
        self._is_woken = False
        self.is_gone: bool = False
        """The client has gone, and waits for no answer."""

    def wake(self) -> None:
        """Look again."""
        self._is_woken = True
        if self._scope is not None:
            self._scope.cancel()

    async def until(self, due: float) -> None:
        """Wait until there is something new, the client has gone, the server shuts down,
        or it is `due`.
        """
        if not self._is_woken:
            with trio.CancelScope(deadline=due) as self._scope:
                await self._outlet.wait_gone()
                self.is_gone = True
            self._scope = None
        self._is_woken = self._host.is_draining

    async def until_gone(self, due: float) -> bool:
        """Do as `until`, and return whether the client has gone."""
        await self.until(due)
        return self.is_gone

    def check(self) -> None:
        """Raise ConnectionLost if the client has gone."""
        if self.is_gone:
            raise ConnectionLost("the client has gone")


@contextmanager
def _held(holder: Holder, size: int, element: int) -> Iterator[None]:
    """Count `size` bytes for `holder` while they are written, as `Holder.hold` says. Raises
    ConnectionLost if the server needs the memory meanwhile.
    """
    with trio.CancelScope() as scope:
        let_go = holder.hold(size, element, scope.cancel)
        try:
            yield
        finally:
            let_go()
    if scope.cancelled_caught:
        raise ConnectionLost("the server has needed the memory of this answer")


def _trace_of(request: Request) -> str:
    """Return the trace of a request; empty for none, and for one that W3C forbids."""
    found = request.header(TRACE) or ""
    return found if _TRACE.fullmatch(found) else ""


async def _write(response: Response, outlet: Outlet) -> int:
    outlet.outcome = response.outcome
    try:
        # Looked at here, and not in `_held`: a small answer takes few calls.
        if response.holder is None or len(response.body) <= SMALL:
            await outlet.write(response)
        else:
            with _held(response.holder, len(response.body), response.element):
                await outlet.write(response)
        outlet.on_written()
    finally:
        if response.outcome is not None and not outlet.is_written:
            response.outcome.on_lost()
    return response.status


async def _write_push(path: str, response: Response, outlet: Outlet) -> bool:
    """Return whether the push was written: a client that resets it wants no more of them."""
    try:
        with outlet.promise(path) as pushed:
            await _write(response, pushed)
    except GONE:
        if response.outcome is not None:
            response.outcome.on_lost()
        return False
    return True
