"""A service for the command line to serve."""

from collections.abc import AsyncIterator
from functools import partial
from typing import TYPE_CHECKING

import trio

from penstock.api import PublicError
from penstock.runtime import Service

if TYPE_CHECKING:
    import penstock

service = Service()


@service.publisher("numbers/{count}", serializer="json")
async def numbers(count: int) -> AsyncIterator[int]:
    for number in range(count):
        yield number


@service.publisher("endless")
async def endless() -> AsyncIterator[bytes]:
    while True:
        yield b"again"


HOSTILE = "a\x1b]0;owned\x07b\x1b[2Jc\rd\x08e\x9b31mf\x7fg\u202eh\u2066i\u200bj\ufeffk\u2028l\U000e0041m\nn"
"""Escape sequences, C0, DEL, C1, and characters that change the order of a text,
or are not seen.
"""


@service.publisher("any/{name}")
async def any_name(name: str) -> AsyncIterator[bytes]:
    """A stream whose name a peer has chosen, and that never ends."""
    yield name.encode()
    await trio.sleep_forever()


@service.publisher("hostile")
async def hostile() -> AsyncIterator[bytes]:
    yield HOSTILE.encode() + b"\xff\xe2\x82"
    yield b"a\tb \xe7\x8c\xab\tc"
    yield b"end\n"


@service.publisher("hostile-json", serializer="json")
async def hostile_json() -> AsyncIterator[dict[str, str]]:
    yield {HOSTILE: HOSTILE}


@service.publisher("hostile-error")
async def hostile_error() -> AsyncIterator[bytes]:
    yield b"one"
    raise PublicError(HOSTILE)


@service.publisher("mixed")
async def mixed() -> AsyncIterator[bytes]:
    yield b"one"
    yield b"two"


@service.publisher("slowly/{count}")
async def slowly(count: int) -> AsyncIterator[bytes]:
    """Slow enough for the progress line to be drawn between the elements."""
    for number in range(count):
        yield f"element {number}".encode()
        await trio.sleep(0.3)


guarded = Service(setup=lambda data: data == b"ticket")
guarded.publisher("numbers/{count}", serializer="json")(numbers)


def make() -> Service:
    return service


def with_argument(database: str) -> Service:
    return service


def make_in_quotes() -> "penstock.Service":
    return service


def make_nothing() -> Service:
    return None  # type: ignore[return-value]  # a fault of the user


async def make_later() -> Service:
    return service


make_partial = partial(with_argument, "db")
calls: list[str] = []


def unannotated():
    calls.append("unannotated")
    return service


def annotated_otherwise() -> object:
    calls.append("annotated_otherwise")
    return service


class NotAService:
    def __init__(self) -> None:
        calls.append("NotAService")


class OwnService(Service):
    pass


nothing = 5
