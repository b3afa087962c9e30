"""Transports and encodings that conformance is checked over:
the whole product, and how each pair is served and reached.

The plugins for WebSocket, msgpack and protobuf must be installed, so `nox -s plugins` and
`nox -s conformance` run these tests.
"""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any

import trustme

from penstock.spi import Tls, TransportOptions
from tests.tck import _remote_publishers as remote

ENCODINGS = ("compact", "msgpack", "protobuf")
WIRE_TRANSPORTS = ("memory", "memory-framed", "tcp", "tls", "unix", "ws", "wss")

# --- the kit


class OverWs(remote.OverTcp):
    """WebSocket on sockets of the system."""

    url = "ws://127.0.0.1:0"


class OverWss(remote.OverTls):
    """WebSocket on encrypted sockets."""

    url = "wss://127.0.0.1:0"


class ReactiveSocketOverWs(remote._ThroughReactiveSocket, OverWs):
    """A frame in each message."""


class ReactiveSocketOverWss(remote._ThroughReactiveSocket, OverWss):
    """A frame in each message, encrypted."""


class _InEncoding:
    """A mixin: the same publisher at a URL that names the encoding of the messages."""

    encoding: str

    def listening(self) -> Any:
        url, *others = super().listening()  # type: ignore[misc]  # of the class that it is mixed into
        return f"{url}?encoding={self.encoding}", *others


KIT_TRANSPORTS = (
    remote.OverMemory,
    remote.OverFramedMemory,
    remote.OverTcp,
    remote.OverTls,
    remote.OverUnix,
    OverWs,
    OverWss,
)


def in_encoding(verification: type, encoding: str, module: str) -> type:
    """Return `verification` in an encoding, as a class of `module`, whose name says both."""
    name = f"{verification.__name__}In{encoding.title()}"
    return type(
        name,
        (_InEncoding, verification),
        {"encoding": encoding, "__module__": module, "__doc__": f"Messages in {encoding}."},
    )


def every_verification(module: str) -> dict[str, type]:
    """Return all classes for the kit that tests/tck does not have, by their names."""
    encoded = [
        in_encoding(each, encoding, module)
        for each, encoding in product(KIT_TRANSPORTS, ENCODINGS[1:])
    ]
    return {
        each.__name__: each
        for each in (OverWs, OverWss, ReactiveSocketOverWs, ReactiveSocketOverWss, *encoded)
    }


# --- the checks of the wire


@contextmanager
def served_at(transport: str) -> Iterator[tuple[str, TransportOptions, TransportOptions]]:
    """Yield the URL to listen at, and the options of server and client."""
    with tempfile.TemporaryDirectory() as folder:
        serving = calling = TransportOptions()
        if transport in {"tls", "wss"}:
            ca, authority, server = (
                trustme.CA(),
                Path(folder) / "ca.pem",
                Path(folder) / "server.pem",
            )
            ca.cert_pem.write_to_path(authority)
            ca.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(server)
            serving, calling = (
                TransportOptions(tls=Tls(certificate=server)),
                TransportOptions(tls=Tls(authorities=authority)),
            )
        places = {"unix": f"{folder}/wire", "memory": "wire", "memory-framed": "wire"}
        yield f"{transport}://{places.get(transport, '127.0.0.1:0')}", serving, calling
