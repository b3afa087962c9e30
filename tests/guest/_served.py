"""A service on asyncio that is served, and a client on asyncio, in one loop."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from penstock import aio
from penstock.guest import _calls

URL = "tcp://127.0.0.1:0"


def service_of_numbers(**options: Any) -> aio.Service:
    """Return a service with a publisher, a request and an answer to bytes."""
    service = aio.Service(**options)

    @service.publisher("numbers/{count}", serializer="json")
    async def numbers(count: int) -> AsyncIterator[int]:
        for number in range(count):
            await asyncio.sleep(0)
            yield number

    @service.request("double")
    async def double(payload: int) -> int:
        await asyncio.sleep(0)
        return 2 * payload

    @service.request_response
    async def echo(data: bytes) -> bytes:
        return data

    return service


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
