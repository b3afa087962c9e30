"""One listener: its engine, and the checks of a request that do not concern a stream.

Rules of this file:

* A browser tells the page's origin, and any page can send requests to any host. So an origin is
  refused unless it is known.
* A page can let one of its names lead to 127.0.0.1 (DNS rebinding). So at an address of this
  machine the Host must be known too.
* The secret of a subscription ends with the name of its worker, if there are several. A request
  that reaches another one is passed on.
* Pages of other origins read the answers only if the option ``http.origins`` names them.
"""

import ipaddress
import re
import secrets
from email.utils import formatdate
from time import time
from typing import Final

import trio

from penstock.spi import ConnectionHost, WorkerGroup
from penstock_http._engine import METHODS, SECRET_OF_PATH, Engine
from penstock_http._extra import is_origin, normal_origin
from penstock_http._heads import Head
from penstock_http._messages import DELIVERY, POSITION, REQUESTED, TRACE, Request, Response, answer
from penstock_http._pages import Pages
from penstock_http._relay import Relays
from penstock_http._settings import Settings

SECRET_BYTES: Final = 24
SECRET_LENGTH: Final = 32
"""Characters of a secret, without the name of its worker."""
EXPOSED: Final = (
    f"Content-Encoding, Location, Retry-After, X-Rsio-Error, X-Rsio-Idle-Timeout, {POSITION}, "
    f"{REQUESTED}"
)
SENT: Final = (
    f"Authorization, Accept-Encoding, Content-Type, Prefer, {DELIVERY}, {POSITION}, {REQUESTED}, "
    f"{TRACE}"
)
PREFLIGHT_SECONDS: Final = "7200"
"""Chromium keeps no preflight for longer."""

_HOST: Final = re.compile(r"(?:\[([0-9a-f:.]+)\]|([^\[\]:]+))(?::[0-9]*)?")
HEALTH: Final = ("/healthz", "/readyz")


class Site:
    """One listener."""

    def __init__(
        self, settings: Settings, *, secure: bool, group: WorkerGroup | None = None
    ) -> None:
        """`group` has the workers of the server, if it runs in several processes."""
        self.settings: Settings = settings
        self._group = group
        self._own = "" if group is None else group.name
        self.relays: Relays | None = None
        """Passes requests on to other workers. None in a server of one process."""
        self.engine: Engine = Engine(settings, self._new_secret)
        self.pages: Pages = Pages(settings, secure=secure, group=group)
        self.is_secure: bool = secure
        self._is_expiring = False
        self._date = (0, "")
        self._known_host = ""
        """The last Host that was good at an address of this machine: nearly every request of a
        client has the same.
        """

    def judge(self, head: Head, *, is_loopback: bool, draining: bool) -> Response | None:
        """Return the answer to a request that concerns no stream, or that may not be sent;
        None for all others.
        """
        request = head.request
        if is_loopback and head.host != self._known_host:
            host = _host_name(head.host)
            if not (host == "localhost" or _is_loopback(host) or host in self.settings.hosts):
                return answer(
                    421, text="this host is not served here; name it with the option http.hosts"
                )
            self._known_host = head.host
        origin = self._origin(request) if "origin" in request.headers else None
        if origin is not None and not self._is_known(origin, head):
            return answer(
                403,
                text=(
                    "pages of this origin may not send requests; name it with the option "
                    "http.origins"
                ),
            )
        if request.path in HEALTH:
            return _health(request, draining=draining)
        if request.method == "OPTIONS" and origin in self.settings.origins and origin is not None:
            methods = ("Access-Control-Allow-Methods", ", ".join((*METHODS, "GET")))
            return answer(
                204,
                methods,
                ("Access-Control-Allow-Headers", SENT),
                ("Access-Control-Max-Age", PREFLIGHT_SECONDS),
            )
        return None

    def shared_headers(self, request: Request) -> tuple[tuple[str, str], ...]:
        """Return the headers of every answer to `request`:
        the date, and what lets a page of a known origin read it.
        """
        now = int(time())
        if self._date[0] != now:
            self._date = now, formatdate(now, usegmt=True)
        date = ("Date", self._date[1])
        origins = self.settings.origins
        if not origins or self._origin(request) not in origins:
            return (date,)
        return (
            date,
            ("Access-Control-Allow-Origin", request.header("origin") or ""),
            ("Access-Control-Allow-Credentials", "true"),
            ("Access-Control-Expose-Headers", EXPOSED),
            ("Vary", "Origin"),
        )

    def worker_of(self, request: Request) -> str:
        """Return the name of the other worker that holds the subscription of a request; empty if
        none does.
        """
        if self._group is None:
            return ""
        found = SECRET_OF_PATH.match(request.path)
        name = "" if found is None else found[1][SECRET_LENGTH:]
        return name if name != self._own and name in self._group.others else ""

    def _new_secret(self) -> str:
        # All of its bits are before the name.
        return secrets.token_urlsafe(SECRET_BYTES) + self._own

    def watch(self, host: ConnectionHost) -> None:
        """End subscriptions that no client uses, from now on."""
        if not self._is_expiring:
            self._is_expiring = True
            host.start_soon(self._expire, name="penstock http subscriptions")

    async def _expire(self) -> None:
        try:
            while (due := self.engine.expire(trio.current_time())) is not None:  # noqa: ASYNC110  # it waits for a time, and not for a state
                await trio.sleep_until(due)
        finally:
            self._is_expiring = False

    def _origin(self, request: Request) -> str | None:
        if "origin" not in request.headers:
            return None
        return normal_origin(request.header("origin") or "")

    def _is_known(self, origin: str, head: Head) -> bool:
        scheme = head.scheme or ("https" if self.is_secure else "http")
        own = normal_origin(f"{scheme}://{head.host}")
        return is_origin(origin) and (origin == own or origin in self.settings.origins)


def _health(request: Request, *, draining: bool) -> Response:
    if request.method not in {"GET", "HEAD"}:
        return answer(405, ("Allow", "GET, HEAD"), text="the method here is GET")
    if request.path == "/readyz" and draining:
        return answer(503, text="the server shuts down")
    return answer(200, text="ok")


def _host_name(host: str) -> str:
    """Return `host` without its port; empty if it is neither a name nor an address."""
    found = _HOST.fullmatch(host)
    return "" if found is None else found[1] or found[2]


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
