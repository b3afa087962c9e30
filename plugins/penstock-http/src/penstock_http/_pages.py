"""Pages for operators and tools, ``/metrics`` and ``/asyncapi.json``, and the files of the option
``http.files``.

Rules of this file:

* A file comes with a policy that lets it use this server alone, and no code within the page.
* ``/metrics`` is for the networks in ``http.metrics``.
  For all others, and without that option, the page does not exist.
* In a server that runs in workers the page has the numbers of all of them. The worker that is asked
  asks the others. A worker that ends leaves its last page, so that no counter falls.
* ``/asyncapi.json`` shows what the service describes to this client, with its credentials; nothing
  without ``Service(describe=True)``.
"""

import importlib
import json
from collections.abc import Sequence
from contextlib import AbstractContextManager, suppress
from typing import Any, Final

import trio

from penstock.api import (
    LimitExceeded,
    PenstockError,
    Rejected,
    Subscriber,
    Subscription,
    UsageError,
)
from penstock.spi import (
    ConnectionHost,
    MessageConnection,
    PeerIdentity,
    WorkerGroup,
    asyncapi_document,
)
from penstock_http._engine import refused
from penstock_http._messages import Request, Response, answer
from penstock_http._outlet import GONE
from penstock_http._proxies import is_within, read_address
from penstock_http._settings import Settings

METRICS: Final = "/metrics"
ASYNCAPI: Final = "/asyncapi.json"
DESCRIPTION: Final = "penstock/describe"
"""The publisher by which a service describes itself."""
PATHS: Final = frozenset({METRICS, ASYNCAPI})
POLICY: Final = (
    (
        "Content-Security-Policy",
        (
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
            "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        ),
    ),
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
)
"""The headers of a file."""
MOST_ENTRIES: Final = 10_000
DESCRIPTION_SECONDS: Final = 10.0

WORKER_SECONDS: Final = 2.0
"""Seconds that another worker has for its page: one that hangs must not hold up all numbers."""

MOST_KEPT: Final = 8
"""Pages of ended workers, until they are added up to one."""


class Pages:
    """The pages of one listener."""

    def __init__(
        self, settings: Settings, *, secure: bool, group: WorkerGroup | None = None
    ) -> None:
        """`group` has the workers of the server, if it runs in several processes."""
        self._settings = settings
        self._secure = secure
        self._group = group
        self._is_measured = False
        self.paths: frozenset[str] = PATHS | settings.files.keys()
        """The paths that are answered here."""
        if group is not None and settings.metrics:
            group.answer(METRICS, self._tell_worker)

    async def answer(
        self,
        request: Request,
        credentials: tuple[str, bytes],
        client: PeerIdentity,
        host: ConnectionHost,
    ) -> Response:
        """Return the answer to a request for one of `paths`. May checkpoint."""
        if request.method not in ("GET", "HEAD"):
            return answer(405, ("Allow", "GET, HEAD"), text="the method here is GET")
        file = self._settings.files.get(request.path)
        if file is not None:
            kind = (("Cache-Control", "no-cache"), ("Content-Type", file[0]))
            return Response(status=200, headers=(*kind, *POLICY), body=file[1])
        if request.path == METRICS:
            return await self._metrics(client, host)
        try:
            return await self._description(request, credentials, client, host)
        except (LimitExceeded, Rejected) as error:
            return refused(error)
        except PenstockError:
            return _nothing()

    async def _metrics(self, client: PeerIdentity, host: ConnectionHost) -> Response:
        address = read_address(client.host or "")
        if address is None or not is_within(address, self._settings.metrics):
            return _nothing()
        text = self._own_page(host)
        if self._group is not None:
            text = await self._of_all(self._group, text)
        return Response(
            status=200,
            headers=(
                ("Cache-Control", "no-store"),
                ("Content-Type", _module("prometheus_client").CONTENT_TYPE_LATEST),
            ),
            body=text,
        )

    def _own_page(self, host: ConnectionHost) -> bytes:
        """Return the numbers of this process."""
        if not self._is_measured:
            self._is_measured = True
            # The server is collected while it runs, so that its counters never fall.
            host.start_soon(
                self._keep, _module("penstock_metrics").collect(host), name="penstock http metrics"
            )
        text: bytes = _module("prometheus_client").generate_latest()
        if self._group is not None:
            self._group.keep(text)
        return text

    async def _keep(self, collected: AbstractContextManager[Any]) -> None:
        """Keep the server collected until it stops."""
        with collected:
            try:
                await trio.sleep_forever()
            finally:
                if self._group is not None:
                    self._group.keep(_module("prometheus_client").generate_latest())

    async def _of_all(self, group: WorkerGroup, own: bytes) -> bytes:
        """Return the numbers of all workers."""
        pages = {group.name: own}
        async with trio.open_nursery() as nursery:
            for worker in group.others:
                nursery.start_soon(_ask, group, worker, pages)
        merged = _module("penstock_metrics").merged
        kept = group.kept
        if len(kept) > MOST_KEPT:
            kept = [merged((), kept)]
            group.keep(kept[0], replaces=len(group.kept))
        text: bytes = merged(pages.items(), kept)
        return text

    async def _tell_worker(self, stream: MessageConnection, host: ConnectionHost) -> None:
        """Send the numbers of this process to a worker that is asked for those of all."""
        with suppress(*GONE):
            await stream.send(self._own_page(host))
            # The other one ends the stream: this end would take the page away.
            await stream.receive()

    async def _description(
        self,
        request: Request,
        credentials: tuple[str, bytes],
        client: PeerIdentity,
        host: ConnectionHost,
    ) -> Response:
        peer = await host.authenticate(*credentials, client)
        entries = _Entries()
        with trio.move_on_after(DESCRIPTION_SECONDS):
            await host.open(DESCRIPTION, peer, entries, protocol="http")
            await entries.wait_complete()
        entries.cancel()
        if not entries.is_complete:
            return answer(503, text="the description could not be made")
        public = self._settings.public.partition("://")
        name, _, path = (
            public[2].partition("/")
            if public[2]
            else (request.header("host") or "localhost", "", "")
        )
        protocol = public[0] or ("https" if self._secure else "http")
        body = json.dumps(
            asyncapi_document(
                map(json.loads, entries.elements), host=name, path=f"/{path}", protocol=protocol
            ),
            indent=1,
        )
        return Response(
            status=200,
            headers=(("Cache-Control", "no-store"), ("Content-Type", "application/json")),
            body=body.encode(),
        )


def check_metrics(settings: Settings) -> None:
    """Raise UsageError if ``/metrics`` is to be served, and penstock-metrics is not installed."""
    if settings.metrics:
        try:
            _module("penstock_metrics")
        except ImportError:
            raise UsageError(
                "http.metrics needs the plugin penstock-metrics; install it: pip install "
                "penstock-metrics"
            ) from None


class _Entries(Subscriber[bytes]):
    """Collects the entries of a description."""

    def __init__(self) -> None:
        self.elements: list[bytes] = []  # bounded by MOST_ENTRIES
        self.is_complete = False
        self._ended = trio.Event()
        self._upstream: Subscription | None = None

    async def wait_complete(self) -> None:
        await self._ended.wait()

    def cancel(self) -> None:
        upstream, self._upstream = self._upstream, None
        if upstream is not None:
            upstream.cancel()

    def on_subscribe(self, subscription: Subscription, /) -> None:
        self._upstream = subscription
        subscription.request(MOST_ENTRIES)

    def on_next(self, element: bytes, /) -> None:
        self.elements.append(element)

    def on_next_many(self, elements: Sequence[bytes], /) -> None:
        """Take entries that are at hand."""
        self.elements += elements

    def on_error(self, error: BaseException, /) -> None:
        self._upstream = None
        self._ended.set()

    def on_complete(self, /) -> None:
        self._upstream = None
        self.is_complete = True
        self._ended.set()


async def _ask(group: WorkerGroup, worker: str, pages: dict[str, bytes]) -> None:
    """Put the page of a worker into `pages`. A worker that hangs or ends is left out."""
    try:
        stream = await group.open(worker, METRICS)
    except GONE:
        return
    try:
        with suppress(*GONE), trio.move_on_after(WORKER_SECONDS):
            page = await stream.receive()
            if page is not None:
                pages[worker] = bytes(page)
    finally:
        with trio.CancelScope(shield=True):
            await stream.abort()


def _module(name: str) -> Any:
    # Not a dependency: a server without the page needs neither of the two.
    return importlib.import_module(name)


def _nothing() -> Response:
    return answer(404, text="nothing is served at this path")
