"""A service on asyncio that is served, and a client on asyncio, in one loop."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from penstock import aio
from penstock.guest import _calls

URL = "tcp://127.0.0.1:0"


@asynccontextmanager
async def serving(
    service: aio.Service, url: str = URL, **options: Any
) -> AsyncIterator[tuple[aio.Server, aio.Peer]]:
    """Serve `service`, and connect to it."""
    async with (
        aio.serve(service, url, **options) as server,
        aio.connect(server.addresses[0]) as peer,
    ):
        yield server, peer


async def reached(is_true: Callable[[], object]) -> None:
    """Wait until something is true. Both loops run on meanwhile."""
    while not is_true():  # noqa: ASYNC110  # it changes in either loop
        await asyncio.sleep(0)


def shorten_cleanup(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Let a call of asyncio have fewer seconds for its end."""
    monkeypatch.setattr(_calls, "CLEANUP_SECONDS", seconds)
