"""The servers that pages connect to: the plugin penstock-websocket, and a bridge that passes
messages on to a server on TCP.
"""

import importlib.util
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

import penstock
from penstock.spi import TransportOptions
from tests._real_time import HANGS_AFTER
from tests.browser._bridge import serve_bridge

SERVERS = ("plugin", "bridge")
PATIENT = penstock.Limits(handshake_timeout=HANGS_AFTER)
"""A busy machine may take longer than the default for a handshake."""


@asynccontextmanager
async def serve_websocket(
    kind: str, service: penstock.Service, *, origin: str = "", url: str = "ws://127.0.0.1:0"
) -> AsyncIterator[str]:
    """Serve over WebSocket for pages of `origin`, and yield the URL. `kind` is one of SERVERS."""
    if kind == "bridge":
        async with serve_bridge(service, PATIENT) as address:
            yield address
        return
    if importlib.util.find_spec("penstock_websocket") is None:
        pytest.skip("the plugin penstock-websocket is not installed")
    options = TransportOptions(extra={"ws.origins": origin} if origin else {})
    async with penstock.serve(service, url, options=options, limits=PATIENT) as server:
        yield f"{server.addresses[0]}/"
