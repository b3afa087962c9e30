"""The error for a server that cannot be reached: what happened, and what to try."""

import errno
import socket
import ssl
from typing import Final

from penstock.api import ConnectionLost
from penstock.spi._tls_failure import tls_failure
from penstock.spi._url import Url

_ADVICE_FOR_FILES: Final = {
    errno.ENOENT: "The file does not exist; has the server been started, with this path?",
    errno.ECONNREFUSED: (
        "The file exists, but no server listens: it has ended, or the file is not a socket"
    ),
    errno.EACCES: "Only the user who runs the server may connect; run this as that user",
}


def unreachable(url: Url, error: Exception, *, reasons: str | None = None) -> ConnectionLost:
    """Return the error for a server that cannot be reached at `url`,
    made from the system's `error`.

    `reasons` replaces the text of `error`: it has the errors of all addresses that were tried.
    """
    if isinstance(error, ssl.SSLError):
        return ConnectionLost(f"the TLS handshake with {url} failed: {tls_failure(error)}")
    # UnicodeError: a label that is empty or too long, refused before any look-up.
    if isinstance(error, socket.gaierror | UnicodeError):
        return ConnectionLost(
            f"the name {url.host!r} of {url} cannot be resolved: {error}. Check it, or write the "
            "address"
        )
    # The URL of a Unix socket has no host: its advice depends on the system's error.
    advice = (
        "Is the server running, at this host and port?"
        if url.host
        else _ADVICE_FOR_FILES.get(getattr(error, "errno", 0) or 0)
    )
    text = f"no server answers at {url}: {reasons or error}"
    return ConnectionLost(f"{text}. {advice}" if advice else text)
