"""Where the servers of NATS are reached, from a URL.

Rules of this file:

* No text that a person may see has the password.
"""

import ssl
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import attrs

from penstock.api import UsageError, shown

DEFAULT_PORT: Final = 4222


@attrs.frozen
class Address:
    """A server, or the servers of a cluster, and how to log in."""

    servers: tuple[tuple[str, int], ...]
    """The host and the port of each."""
    login: dict[str, Any] = attrs.field(repr=False)
    tls: ssl.SSLContext | None = attrs.field(repr=False)

    def __str__(self) -> str:
        places = ",".join(f"{host}:{port}" for host, port in self.servers)
        return f"{'tls' if self.tls else 'nats'}://{places}"


def parse_address(url: str, tls: ssl.SSLContext | None = None) -> Address:
    """Return the address in ``nats://[user:password@|token@]host[:port][,host[:port]...]``. Raises
    UsageError.
    """
    try:
        parts = urlsplit(url)
        login_text, _, places = parts.netloc.rpartition("@")
        each = [urlsplit(f"//{place}") for place in places.split(",")]
        servers = tuple((one.hostname or "", one.port or DEFAULT_PORT) for one in each)
        parts = parts._replace(netloc=f"{login_text}@") if login_text else parts
    except (ValueError, AttributeError):
        raise _no_address(url) from None
    wrong = parts.path.strip("/") or parts.query or parts.fragment
    if parts.scheme not in ("nats", "tls") or not all(host for host, _ in servers) or wrong:
        raise _no_address(url)
    login: dict[str, Any] = {}
    if parts.password is not None:
        login = {"user": unquote(parts.username or ""), "pass": unquote(parts.password)}
    elif parts.username is not None:
        login = {"auth_token": unquote(parts.username)}
    context = tls
    if context is None and parts.scheme == "tls":
        context = ssl.create_default_context()
    return Address(servers, login, context)


def _no_address(url: object) -> UsageError:
    # Not the URL itself: it may have a password.
    kind = f"{url.partition('://')[0]}://…" if isinstance(url, str) and "://" in url else shown(url)
    return UsageError(
        f"{kind} is no URL of NATS: give nats://host:port, or tls://… with TLS; the servers of a "
        "cluster are host:port,host:port; user:password@ or token@ goes before the first host"
    )
