"""The service that pages and Node programs read in these tests."""

from collections.abc import AsyncIterator, Iterable

import penstock

service = penstock.Service()


@service.publisher("numbers/{count}", serializer="json")
async def numbers(count: int) -> AsyncIterator[dict[str, int]]:
    """Yield `count` objects."""
    for number in range(count):
        yield {"number": number}


@service.publisher("texts", serializer="text")
def texts() -> Iterable[str]:
    """Yield texts that are not ASCII."""
    return ("grün", "€", "")


@service.publisher("blocks/{count}", batches=True)
async def blocks(count: int, size: int = 64) -> AsyncIterator[list[bytes]]:
    """Yield `count` elements of `size` bytes, in batches."""
    block = bytes(range(256)) * (size // 256 + 1)
    for start in range(0, count, 256):
        yield [block[:size]] * min(256, count - start)


@service.publisher("failing", serializer="json")
async def failing() -> AsyncIterator[int]:
    """Yield one element, and fail with a text for the peer."""
    yield 1
    raise penstock.PublicError("boom")


log = penstock.RingLog(retention=penstock.Retention(max_count=100))
service.publish("log", log)


@service.request("fill the log")
async def fill(payload: bytes) -> bytes:
    """Append the payload."""
    await log.append([payload])
    return b""


@service.request("echo")
async def echo(payload: bytes) -> bytes:
    """Answer with the payload."""
    return payload
