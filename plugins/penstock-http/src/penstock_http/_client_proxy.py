"""The proxy between the client and the servers it reads: the option ``http.proxy``, or the
environment, as for curl and other programs.

Rules of this file:

* The user and the password of a proxy go to that proxy alone, and are in no message.
* ``https://`` goes through a tunnel (CONNECT), so the proxy sees the name of the server
  and no bytes of the stream.
"""

import base64
from typing import Final
from urllib.parse import SplitResult, unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

import attrs

from penstock.api import UsageError
from penstock.spi import TransportOptions

OPTION: Final = "http.proxy"
_PORT: Final = 80
"""The port of a proxy whose URL names no port."""


@attrs.frozen(repr=False)
class Proxy:
    """A proxy that speaks HTTP/1.1."""

    host: str
    port: int
    headers: list[tuple[str, str]]
    """Its credentials."""

    @property
    def name(self) -> str:
        """Its host and port, for messages."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def proxy_for(url: SplitResult, options: TransportOptions) -> Proxy | None:
    """Return the proxy for `url`, or None to connect to its server.
    Raises UsageError for a proxy whose URL is not http://.

    The option holds for every server; an empty one means no proxy. Without the option
    ``http_proxy``, ``https_proxy``, ``all_proxy`` and ``no_proxy`` hold, in small or capital
    letters, or else the settings of macOS or Windows. HTTP_PROXY does not hold in a program of CGI,
    where it is a header of the client.
    """
    if OPTION in options.extra:
        return _read(options.extra[OPTION], OPTION)
    found = getproxies()
    variable = url.scheme if url.scheme in found else "all"
    # "localhost:7002" is looked for with its port and without it.
    if variable not in found or proxy_bypass(url.netloc.rpartition("@")[2]):
        return None
    return _read(found[variable], f"{variable}_proxy")


def _read(text: object, where: str) -> Proxy | None:
    """Return the proxy that a text names: a URL, or a host and a port."""
    if text == "":
        return None
    if not isinstance(text, str):
        raise UsageError(f"{where}={text!r}; give a text: http://proxy.example:3128")
    try:
        parts = urlsplit(text if "://" in text else f"http://{text}")
        host, port = parts.hostname, parts.port or _PORT
    except ValueError:
        host, port, parts = None, 0, urlsplit("")
    if parts.scheme != "http" or not host or parts.path not in ("", "/") or not host.isascii():
        # The text is not repeated: it may have a password.
        raise UsageError(
            f"{where} is no proxy that can be used; write http://proxy.example:3128, with http:// "
            "for https:// streams too"
        )
    headers = []
    if parts.username is not None:
        secret = f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()
        headers = [("Proxy-Authorization", f"Basic {base64.b64encode(secret).decode()}")]
    return Proxy(host, port, headers)
