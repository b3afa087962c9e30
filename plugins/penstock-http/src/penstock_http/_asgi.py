"""The streams of a service as an ASGI application: `AsgiApp`.

Rules of this file:

* An application serves in one loop at a time: for the length of its lifespan, for the length of
  `AsgiApp.serving`, or from its first request to the end of the loop.
* Why a service cannot be served is told once, in the log. Each client gets 500.
"""

import logging
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from inspect import isawaitable
from os import PathLike
from typing import Any, Final

import attrs

import penstock
from penstock import Credentials, Limits
from penstock.api import AuthRefused, ConnectionLost, Extension, Rejected, UsageError
from penstock.spi import PeerIdentity, Registry, TransportOptions, build_registry
from penstock_http._asgi_answer import (
    AsgiAnswer,
    head_of,
    messages_of,
    peer_of,
    read_body,
    request_of,
)
from penstock_http._asgi_loops import (
    Client,
    Event,
    Receive,
    Scope,
    Send,
    WebLoop,
    current_loop,
)
from penstock_http._asgi_transport import URL, AsgiTransport
from penstock_http._asgi_websocket import (
    POLICY,
    TRY_LATER,
    AsgiWebSocket,
    serve_websocket,
    subprotocol_of,
)
from penstock_http._engine import refused
from penstock_http._heads import BadRequest
from penstock_http._messages import Request, Response, answer
from penstock_http._outlet import GONE
from penstock_http._site import Site
from penstock_http._websocket import is_installed

Principal = Callable[[Scope], Any]

TEXTS: Final = 16
"""Texts of failures that an application remembers, so that each is logged once. A text may differ
at each start, and the next requests meet the text that was logged last.
"""

_LOG: Final = logging.getLogger("penstock.asgi")
_OVER: Final = answer(503, ("Retry-After", "1"), text="the streams are not served any more")
_REFUSED: Final = answer(500, text="the streams cannot be served; the log of the server says why")


class AsgiApp:
    """The streams of a service as an ASGI application. Its paths are those of ``http://``.

    ::

        streams = AsgiApp(service)
        site.mount("/streams", streams)

    On asyncio (uvicorn, hypercorn, granian, daphne) `service` is a `penstock.aio.Service`, on trio
    (hypercorn, anycorn) a `penstock.Service`. As a part of a site it serves from its first request
    to the end of the loop, or for the length of `serving`; as the whole site, for the length of its
    lifespan.
    """

    def __init__(  # noqa: PLR0913  # the options of `serve`
        self,
        service: penstock.Service,
        *,
        principal: Principal | None = None,
        limits: Limits | None = None,
        extensions: Sequence[Extension] | None = None,
        registry: Registry | None = None,
        options: TransportOptions | None = None,
        credentials: Credentials | None = None,
        record: "str | PathLike[str] | None" = None,
        resume: bool = False,
        on_violation: Callable[[Exception], None] | None = None,
    ) -> None:
        """`principal` is called with the scope of each request, in the loop of the web server, and
        returns the principal of the client: ``lambda scope: scope["user"].username``, for a
        framework that has authenticated it. It may be async. `Service(authorize=…)` gets what it
        returns, `Service(authenticate=…)` may replace that. A text is best: requests of one client
        give equal ones. A `Rejected` that it raises refuses the request, as in ``authenticate``;
        another exception goes to the web server.

        The others are those of `serve`; options of HTTP go into the ``extra`` of `options`.
        `extensions`, `credentials` and `resume` are for connections over WebSocket. Raises
        UsageError for a wrong argument.
        """
        if not isinstance(service, penstock.Service):
            raise UsageError(
                f"AsgiApp() was given {service!r} to serve; give a penstock.aio.Service, or a "
                "penstock.Service for a web server on trio"
            )
        if principal is not None and not callable(principal):
            raise UsageError(
                f"principal={principal!r}; give a function that gets a scope of ASGI, for example "
                'lambda scope: scope["user"].username'
            )
        self._service = service
        self._principal = principal
        self._registry = registry
        given = {
            "limits": limits,
            "extensions": extensions,
            "options": options,
            "credentials": credentials,
            "record": record,
            "resume": resume or None,
            "on_violation": on_violation,
        }
        self._options = {name: value for name, value in given.items() if value is not None}
        self._run: _Run | None = None
        self._logged = deque[str](maxlen=TEXTS)

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[Any]:
        """Serve for the length of an ``async with`` block, in the lifespan of a site; yield the
        server: a `penstock.aio.Server` on asyncio, a `penstock.Server` on trio.

        Leaving the block answers polls that wait, ends streams, and waits for the rest, for at most
        `Limits.drain` seconds. Without the block the streams are cut when the loop ends.
        Raises UsageError if the application serves already, or cannot serve. Entering and leaving
        checkpoint.
        """
        if self._run is not None and not self._run.is_over:
            raise UsageError(
                f"{self!r} serves already, since {self._run.since}; enter serving() once, in the "
                "lifespan of the whole site"
            )
        run = self._run = self._new_run(current_loop(), "the start of its lifespan")
        async with self._served(run) as server:
            yield server

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or attend the lifespan. Called by the web server."""
        kind = scope["type"]
        if kind == "lifespan":
            await self._attend_lifespan(receive, send)
        elif kind == "websocket":
            with suppress(ConnectionLost):  # the client has gone
                await self._serve_websocket(scope, receive, send)
        elif kind == "http":
            with suppress(ConnectionLost):  # the client has gone
                await self._answer(scope, receive, send)

    # --- requests

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = request_of(scope)
        try:
            head = head_of(request, scope)
            await read_body(receive)
        except BadRequest as error:
            await _reply(answer(error.status, text=str(error)), request, send)
            return
        try:
            run = await self._run_here()
        except UsageError as error:
            self._log_once(error)
            await _reply(_REFUSED, request, send)
            return
        served, site, host = run.transport.served, run.transport.site, run.transport.host
        if served is None or site is None or host is None:
            await _reply(_OVER if run.error is None else _REFUSED, request, send)
            return
        try:
            peer = await self._peer_of(scope)
        except Rejected as error:
            refusal = error if error.temporary else AuthRefused(str(error), processed=False)
            await _reply(refused(refusal), request, send, site)
            return
        answering, stall = served[_server_of(scope).is_loopback], host.limits.write_stall

        async def write(client: Client) -> None:
            with suppress(*GONE):
                await answering.answer(head, peer, AsgiAnswer(request, client, site, stall=stall))

        await run.loop.answer(write, receive, send)

    async def _serve_websocket(self, scope: Scope, receive: Receive, send: Send) -> None:
        await receive()  # the wish of the client to connect
        refusal = {"type": "websocket.close", "code": TRY_LATER}
        try:
            run = await self._run_here()
        except UsageError as error:
            self._log_once(error)
            await send(refusal)
            return
        host, site, options = run.transport.host, run.transport.site, run.transport.options
        if host is None or site is None or not is_installed():
            await send(refusal)
            return
        # Before it is accepted, a close is a 403 of HTTP.
        refusal["code"] = POLICY
        try:
            head = head_of(request_of({**scope, "method": "GET"}), scope)
            peer = await self._peer_of(scope)
            subprotocol = subprotocol_of(scope, options)
        except (BadRequest, Rejected, ConnectionLost):
            await send(refusal)
            return
        is_loopback = _server_of(scope).is_loopback
        if site.judge(head, is_loopback=is_loopback, draining=False):
            await send(refusal)
            return
        adopt = host.adopt

        async def serve(client: Client) -> None:
            websocket = AsgiWebSocket(client, subprotocol=subprotocol, peer=peer, options=options)
            with suppress(*GONE):
                await serve_websocket(websocket, client, adopt)

        await run.loop.answer(serve, receive, send)

    async def _run_here(self) -> "_Run":
        """Return what serves in this loop. The first request of a loop begins it. Raises UsageError
        if the application serves in another loop.
        """
        loop, run = current_loop(), self._run
        if run is None or (run.loop != loop and run.is_over):
            run = self._run = self._new_run(loop, "its first request")
            loop.begin(partial(self._serve_to_the_end, run), f"penstock {self!r}")
        elif run.loop != loop:
            raise UsageError(
                f"{self!r} serves in another loop, since {run.since}, and was called in this one. "
                "A service belongs to one loop: make a service and an application for each"
            )
        await run.ready.wait()
        return run

    async def _peer_of(self, scope: Scope) -> PeerIdentity:
        """Return the client of `scope` with its principal. Raises Rejected as the function does."""
        peer = peer_of(scope)
        if self._principal is None:
            return peer
        principal = self._principal(scope)
        if isawaitable(principal):
            principal = await principal
        return attrs.evolve(peer, principal=principal)

    # --- serving

    def _new_run(self, loop: WebLoop, since: str) -> "_Run":
        ready = loop.event()
        return _Run(loop=loop, since=since, ready=ready, transport=AsgiTransport(ready.set))

    @asynccontextmanager
    async def _served(self, run: "_Run") -> AsyncIterator[Any]:
        registry = self._registry or build_registry()
        registry = attrs.evolve(registry, transports={**registry.transports, "asgi": run.transport})
        try:
            run.loop.refuse(self._service)
            async with run.loop.serve(
                self._service, URL, {**self._options, "registry": registry}
            ) as server:
                await run.ready.wait()
                yield server
        finally:
            run.has_ended = True
            run.ready.set()

    async def _serve_to_the_end(self, run: "_Run") -> None:
        try:
            async with self._served(run):
                await run.loop.event().wait()
        except Exception as error:  # boundary: no caller is there, so the log tells it
            run.error = error
            self._log_once(error)

    def _log_once(self, error: Exception) -> None:
        text = str(error)
        if text not in self._logged:
            self._logged.append(text)
            is_known = isinstance(error, UsageError)
            _LOG.error("%s", text, exc_info=None if is_known else error)

    # --- the lifespan

    async def _attend_lifespan(self, receive: Receive, send: Send) -> None:
        await receive()
        stage = "startup"
        try:
            async with self.serving():
                await send({"type": "lifespan.startup.complete"})
                stage = "shutdown"
                await receive()
        except Exception as error:  # boundary: the web server shows it, and ends
            await send({"type": f"lifespan.{stage}.failed", "message": str(error)})
        else:
            await send({"type": "lifespan.shutdown.complete"})

    def __repr__(self) -> str:
        return f"<AsgiApp of {self._service!r}>"


@attrs.define(kw_only=True)
class _Run:
    """What an application serves in one loop, from its start to its end."""

    loop: WebLoop
    since: str
    """How it began, for a person."""
    transport: AsgiTransport
    ready: Event
    """Requests are answered, or never will be."""
    has_ended: bool = False
    error: Exception | None = None
    """Why it has ended, if its first request has begun it."""

    @property
    def is_over(self) -> bool:
        return self.has_ended or self.loop.is_over()


def _server_of(scope: Scope) -> PeerIdentity:
    """Return the address that the client has reached, as a peer has it."""
    return PeerIdentity(address="", host=(scope.get("server") or ("",))[0])


async def _reply(
    response: Response, request: Request, send: Send, site: Site | None = None
) -> None:
    for message in messages_of(response, request, site):
        await send(message)
