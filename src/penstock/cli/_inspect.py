"""Show services and their streams in a browser: who waits for whom.

Each service must show its map of demand: penstock serve --inspect, or serve(…, inspect=True). The
command prints the address of one page, which this machine alone can open, and serves it until
Ctrl-C. The address has a secret: without it the page shows nothing. Services that a service reads
from are asked, too, unless credentials are given: those go to the services that you have named, and
nowhere else.
"""

import argparse
import hmac
import secrets
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import trio

from penstock.api import Credentials, PenstockError, PublicError, StreamTimeout, UsageError
from penstock.cli._cause import unknown_services
from penstock.cli._credentials import credentials_arguments
from penstock.cli._demand_map import (
    AGAIN,
    DemandMap,
    check_timeout,
    read_map,
    service_urls,
    timeout_argument,
)
from penstock.cli._fleet import Fleet, cause_at, differences
from penstock.cli._printable import printable
from penstock.cli._tls import tls_arguments
from penstock.cli._transports import transports_argument
from penstock.runtime import DEMAND_MAP, Server, Service, serve, subscribe
from penstock.spi import PeerIdentity, TransportOptions, build_registry, parse_url

PAGE: Final = Path(__file__).parent / "inspector"
"""The files of the page."""

CLIENT: Final = Path(__file__).parents[3] / "clients" / "javascript"
"""The JavaScript client in a clone. A wheel has it beside the page."""

FILES: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        "/": ("index.html", "text/html; charset=utf-8"),
        "/page.css": ("page.css", "text/css; charset=utf-8"),
        "/page.js": ("page.js", "text/javascript; charset=utf-8"),
        "/graph.js": ("graph.js", "text/javascript; charset=utf-8"),
        "/table.js": ("table.js", "text/javascript; charset=utf-8"),
        "/timeline.js": ("timeline.js", "text/javascript; charset=utf-8"),
        "/http.js": ("http.js", "text/javascript; charset=utf-8"),
        "/penstock.js": ("penstock.js", "text/javascript; charset=utf-8"),
    }
)
"""The files that are served, by path, with their names and types."""

SECRET_BYTES: Final = 24

A_PICTURE: Final = 0.5
"""Seconds between two pictures, at least."""

MOST_FOLLOWED: Final = 8
"""Services that are asked because another one reads from them."""

MOST_PAGES: Final = 8
"""Pages that are open at a time."""


def arguments(command: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    command.add_argument(
        "urls", metavar="URL", nargs="+", help="the servers: tcp://127.0.0.1:7000, …"
    )
    command.add_argument(
        "--at",
        metavar="URL",
        default="http://127.0.0.1:0",
        help="where the page is served (default: http://127.0.0.1:0, any free port)",
    )
    timeout_argument(command)
    credentials_arguments(command)
    transports_argument(command)
    tls_arguments(command, listens=False)


async def run(options: argparse.Namespace) -> int:
    """Serve the page."""
    check_timeout(options)
    at = parse_url(options.at)
    if at.transport != "http":
        raise UsageError(f"--at {options.at}: give http://HOST:PORT")
    _check_installed(at.transport)
    fleet = Fleet([DemandMap(url) for url in dict.fromkeys(service_urls(options.urls))])
    secret = secrets.token_urlsafe(SECRET_BYTES)
    files = await trio.to_thread.run_sync(page_files)
    # Not the options for the services: their certificates are not for this page.
    page = TransportOptions(extra={"http.files": files, "http.lost": "end"})
    own = f"memory://penstock-inspect-{secrets.token_hex(8)}"
    async with serve(
        page_service(fleet, secret),
        options.at,
        own,
        inspect=True,
        options=page,
    ) as server:
        failures = []
        async with trio.open_nursery() as nursery:
            reading = Reading(fleet, options, nursery)
            try:
                await reading.begin()
            except PenstockError as error:
                # Raised below, and not a group: the command tells one error.
                failures.append(error)
                nursery.cancel_scope.cancel()
            await nursery.start(reading.read_own, own, Credentials.bearer(secret))
            sys.stdout.write(f"{_address(server)}#{secret}\n")
            sys.stdout.flush()
        if failures:
            raise failures[0]
    return 0


def _address(server: Server) -> str:
    url = next(each for each in server.addresses if each.transport == "http")
    return f"{url}/"


def _check_installed(scheme: str) -> None:
    if scheme not in build_registry().transports:
        raise UsageError(
            "the page is served over HTTP, and penstock-http is not installed: pip install "
            "'penstock[http]'; `penstock top` shows the same in a terminal"
        )


def page_files() -> dict[str, tuple[str, bytes]]:
    """Return the files of the page, by path. Blocks."""
    found = {}
    for path, (name, kind) in FILES.items():
        file = PAGE / name
        found[path] = kind, (file if file.exists() else CLIENT / name).read_bytes()
    return found


def page_service(fleet: Fleet, secret: str) -> Service:
    """Return the service that the page reads, for those who know the secret."""

    def authenticate(_scheme: str, data: bytes, _peer: PeerIdentity) -> str | None:
        return "page" if hmac.compare_digest(data, secret.encode()) else None

    service, opened = Service(authenticate=authenticate), 0

    @service.publisher("penstock/fleet", serializer="json")
    async def pictures() -> AsyncIterator[dict[str, Any]]:
        nonlocal opened
        if opened >= MOST_PAGES:
            raise PublicError(f"{MOST_PAGES} pages are open, and no more may be; close another one")
        opened += 1
        try:
            async with aclosing(_messages(fleet)) as messages:
                async for message in messages:
                    yield message
        finally:
            opened -= 1

    @service.publisher("penstock/why/{number}/{key}", serializer="json")
    async def why(number: int, key: str) -> AsyncIterator[dict[str, Any]]:
        await trio.lowlevel.checkpoint()
        found = cause_at(fleet.maps, number, key)
        if found is not None:
            yield found

    return service


async def _messages(fleet: Fleet) -> AsyncGenerator[dict[str, Any]]:
    known: dict[str, dict[str, Any]] = {}
    number, told_past = 0, False
    while True:
        await fleet.wait_after(number)
        number, rows = fleet.number, fleet.picture.rows
        # The picture before the rows: a person sees it while a thousand rows are on their way.
        yield fleet.message()
        if not told_past:
            told_past = True
            yield fleet.past()
        for message in differences(known, rows):
            yield message
        known = rows


class Reading:
    """Reads the maps of a fleet, again and again if a service is lost."""

    def __init__(self, fleet: Fleet, options: argparse.Namespace, nursery: trio.Nursery) -> None:
        self._fleet = fleet
        self._options = options
        self._nursery = nursery
        self._may_follow = options.bearer is None and options.basic is None
        self.followed: set[str] = set()
        """The URLs of services that were asked because another one reads from them."""
        self._changed = trio.Event()

    async def begin(self) -> None:
        """Read each service, and return when all have been looked at. Raises what one of them
        answers instead.
        """
        failures = []

        async def start(each: DemandMap) -> None:
            try:
                await self._nursery.start(self._read_named, each)
            except PenstockError as error:
                failures.append(error)
                nursery.cancel_scope.cancel()

        async with trio.open_nursery() as nursery:
            for each in tuple(self._fleet.maps):
                nursery.start_soon(start, each)
        if failures:
            raise failures[0]
        self._nursery.start_soon(self._draw)

    async def read_own(
        self, url: str, credentials: Credentials, *, task_status: trio.TaskStatus[None]
    ) -> None:
        """Read the map of the inspector itself."""
        own = DemandMap(url)
        opening = subscribe(url, publisher=DEMAND_MAP, serializer="json", credentials=credentials)
        async with opening as stream:
            async for message in stream:
                if own.apply(message):
                    if self._fleet.own is None:
                        self._fleet.own = own
                        self._fleet.maps.append(own)
                        task_status.started()
                    self._changed.set()

    async def _read_named(self, each: DemandMap, *, task_status: trio.TaskStatus[None]) -> None:
        """Read a service that the person has named: one that was never there is a mistake. One that
        is there and does not answer is shown as lost, and asked again.
        """
        has_started = False

        def start() -> None:
            nonlocal has_started
            if not has_started:
                has_started = True
                task_status.started()

        while True:
            try:
                await self._read(each, on_first=start)
            except PenstockError as error:
                if not has_started and not isinstance(error, StreamTimeout):
                    raise
                self._lose(each, str(error))
            start()
            await trio.sleep(AGAIN)

    async def _read_followed(self, each: DemandMap) -> None:
        """Read a service that nobody has named. One that shows no map is left out."""
        try:
            await self._read(each, on_first=lambda: self._fleet.maps.append(each))
        except PenstockError:
            return
        await self._read_again(each)

    async def _read_again(self, each: DemandMap) -> None:
        while True:
            await trio.sleep(AGAIN)
            await self._read(each)

    async def _read(self, each: DemandMap, on_first: Callable[[], None] = lambda: None) -> None:
        """Read a map until it is lost. Raises PenstockError if there was none."""

        def looked() -> bool:
            if each.looks == 1:
                on_first()
            self._fleet.lost.pop(each.url, None)
            self._changed.set()
            return False

        try:
            await read_map(each, self._options, looked, bounded=False)
            why = "its map has ended"
        except PenstockError as error:
            if not each.looks:
                raise
            why = str(error)
        self._lose(each, why)

    def _lose(self, each: DemandMap, why: str) -> None:
        each.clear()
        self._fleet.lost[each.url] = printable(why)
        self._changed.set()

    async def _draw(self) -> None:
        while True:
            self._fleet.draw(trio.current_time())
            self.follow()
            await trio.sleep(A_PICTURE)
            await self._changed.wait()
            self._changed = trio.Event()

    def follow(self) -> None:
        """Begin to read the services that one of them reads from."""
        if not self._may_follow:
            return
        for url in unknown_services(self._fleet.maps):
            if url in self.followed or len(self.followed) >= MOST_FOLLOWED:
                continue
            self.followed.add(url)
            self._nursery.start_soon(self._read_followed, DemandMap(url))
