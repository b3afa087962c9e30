"""Where a server of NATS is reached, from a URL.

Rules of this file:

* No text that a person may see has the password.
"""

import ssl
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import attrs
import trio

from penstock.api import UsageError, shown

DEFAULT_PORT: Final = 4222


@attrs.frozen
class Address:
    """A server, and how to log in."""

    host: str
    port: int
    login: dict[str, Any] = attrs.field(repr=False)
    tls: ssl.SSLContext | None = attrs.field(repr=False)

    def __str__(self) -> str:
        return f"{'tls' if self.tls else 'nats'}://{self.host}:{self.port}"

    async def connect(self) -> trio.abc.Stream:
        """Connect. Raises OSError."""
        return await trio.open_tcp_stream(self.host, self.port)


def parse_address(url: str, tls: ssl.SSLContext | None = None) -> Address:
    """Return the address in ``nats://[user:password@|token@]host[:port]``. Raises UsageError."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except (ValueError, AttributeError):
        raise _no_address(url) from None
    wrong = parts.path.strip("/") or parts.query or parts.fragment
    if parts.scheme not in ("nats", "tls") or not parts.hostname or wrong:
        raise _no_address(url)
    login: dict[str, Any] = {}
    if parts.password is not None:
        login = {"user": unquote(parts.username or ""), "pass": unquote(parts.password)}
    elif parts.username is not None:
        login = {"auth_token": unquote(parts.username)}
    context = tls
    if context is None and parts.scheme == "tls":
        context = ssl.create_default_context()
    return Address(parts.hostname, DEFAULT_PORT if port is None else port, login, context)


def _no_address(url: object) -> UsageError:
    # Not the URL itself: it may have a password.
    kind = f"{url.partition('://')[0]}://…" if isinstance(url, str) and "://" in url else shown(url)
    return UsageError(
        f"{kind} is no URL of NATS: give nats://host:port, or tls://… with TLS; user:password@ or "
        "token@ goes before the host"
    )
