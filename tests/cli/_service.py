"""A service for the command line to serve."""

from collections.abc import AsyncIterator

from penstock.runtime import Service

service = Service()


@service.publisher("numbers/{count}", serializer="json")
async def numbers(count: int) -> AsyncIterator[int]:
    for number in range(count):
        yield number


@service.publisher("endless")
async def endless() -> AsyncIterator[bytes]:
    while True:
        yield b"again"


guarded = Service(setup=lambda data: data == b"ticket")
guarded.publisher("numbers/{count}", serializer="json")(numbers)


def make() -> Service:
    return service


def with_argument(database: str) -> Service:
    return service


nothing = 5
