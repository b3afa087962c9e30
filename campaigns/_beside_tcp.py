"""Measure a transport beside tcp://: the service, and the measures of elements and of questions."""

import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from statistics import median
from time import perf_counter
from typing import Final

import penstock

ROUNDS: Final = 5

service = penstock.Service()


@service.publisher("elements/{size}")
async def elements(size: int) -> AsyncIterator[bytes]:
    element = bytes(size)
    while True:
        yield element


@service.request("echo")
async def echo(payload: bytes) -> bytes:
    return payload


async def measure_elements(address: str, size: int, count: int) -> float:
    """Return elements of `size` bytes per second."""
    async with (
        penstock.connect(address) as peer,
        peer.subscribe(f"elements/{size}", demand=1024) as stream,
    ):
        await anext(stream)
        began = perf_counter()
        for _ in range(count):
            await anext(stream)
        return count / (perf_counter() - began)


async def measure_questions(address: str, count: int) -> float:
    """Return questions per second, one at a time."""
    async with penstock.connect(address) as peer:
        await peer.request("echo", b"?" * 64)
        began = perf_counter()
        for _ in range(count):
            await peer.request("echo", b"?" * 64)
        return count / (perf_counter() - began)


async def rounds(*measures: Callable[[], Awaitable[float]]) -> list[float]:
    """Return the median of each measure;
    they take turns, so that all of them meet the same machine.
    """
    results = [[await measure() for measure in measures] for _ in range(ROUNDS)]
    return [median(column) for column in zip(*results, strict=True)]


def title_of(size: int) -> str:
    """Return a number of bytes as a table shows it."""
    return f"{size} B" if size < 1024 else f"{size >> 10} KiB"


@contextmanager
def serving_process(campaign: str) -> Iterator[list[str]]:
    """Run ``python -m campaigns.CAMPAIGN serve``, and yield the words of its first line."""
    command = [sys.executable, "-m", f"campaigns.{campaign}", "serve"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            yield server.stdout.readline().split()
        finally:
            server.kill()
