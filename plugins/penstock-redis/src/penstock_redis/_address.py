"""Where a server of Redis is reached, from a URL.

Rules of this file:

* No text that a person may see has the password.
"""

import ssl
from typing import Final
from urllib.parse import SplitResult, unquote, urlsplit

import attrs
import trio

from penstock.api import UsageError, shown

DEFAULT_PORT: Final = 6379

SCHEMES: Final = ("redis", "rediss", "redis+unix")


@attrs.frozen
class Address:
    """A server, and how to log in. `database` is selected after that."""

    host: str
    port: int
    path: str
    """Of a Unix socket; empty for TCP."""
    database: int
    username: str
    password: str = attrs.field(repr=False)
    tls: ssl.SSLContext | None = attrs.field(repr=False)

    def __str__(self) -> str:
        place = self.path or f"{self.host}:{self.port}"
        return f"redis{'s' if self.tls else ''}://{place}"

    async def connect(self) -> trio.abc.Stream:
        """Connect. Raises OSError, which a failed TLS handshake is converted to."""
        if self.path:
            return await trio.open_unix_socket(self.path)
        stream = await trio.open_tcp_stream(self.host, self.port)
        if self.tls is None:
            return stream
        secured = trio.SSLStream(stream, self.tls, server_hostname=self.host)
        try:
            await secured.do_handshake()
        except trio.BrokenResourceError as error:
            await trio.aclose_forcefully(secured)
            raise OSError(f"the TLS handshake failed: {error.__cause__ or error}") from error
        except BaseException:
            await trio.aclose_forcefully(secured)
            raise
        return secured


def parse_address(url: str, tls: ssl.SSLContext | None = None) -> Address:
    """Return the address in ``redis://[user[:password]@]host[:port][/database]``. Raises
    UsageError.
    """
    try:
        parts = urlsplit(url)
    except (ValueError, AttributeError):
        raise _no_address(url) from None
    try:
        port = parts.port
    except ValueError:
        # Not the port itself: in a URL without a host it is a password.
        raise UsageError(
            "the port of the URL of Redis is no number from 0 to 65,535: give "
            f"redis://host:port/database, as in redis://127.0.0.1:{DEFAULT_PORT}/0"
        ) from None
    if parts.scheme not in SCHEMES or parts.query or parts.fragment:
        raise _no_address(url)
    if tls is not None and parts.scheme != "rediss":
        raise UsageError(f"tls= was given for {parts.scheme}://…, which has no TLS: use rediss://…")
    is_unix = parts.scheme == "redis+unix"
    if is_unix == bool(parts.hostname):
        raise _no_address(url)
    name = "" if is_unix else parts.path.strip("/")
    if name and not name.isdecimal():
        raise UsageError(
            f"{shown(name)} is no database of Redis: a URL ends with the number of one, as in "
            "redis://127.0.0.1:6379/0, and the name of the stream is an argument of its own"
        )
    return Address(
        host=parts.hostname or "",
        port=DEFAULT_PORT if port is None else port,
        path=parts.path if is_unix else "",
        database=int(name or 0),
        username=unquote(parts.username or ""),
        password=unquote(parts.password or ""),
        tls=_context_of(parts, tls),
    )


def _context_of(parts: SplitResult, tls: ssl.SSLContext | None) -> ssl.SSLContext | None:
    return tls or ssl.create_default_context() if parts.scheme == "rediss" else None


def _no_address(url: object) -> UsageError:
    # Not the URL itself: it may have a password.
    kind = f"{url.partition('://')[0]}://…" if isinstance(url, str) and "://" in url else shown(url)
    return UsageError(
        f"{kind} is no URL of Redis: give redis://host:port/database, rediss://… with TLS, or "
        "redis+unix:///path/of/socket; user:password@ goes before the host"
    )
