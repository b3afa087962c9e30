"""Elements are read as the publisher announces, or with the serializer of the program,
over real connections.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest

import penstock
from penstock.api import ProtocolError, UsageError
from penstock.extensions import Content
from penstock.runtime.connection import AnnouncedSerializer
from penstock.spi import Serializer, build_registry, hookimpl
from tests.runtime._observer import Observer


@dataclass
class Quote:
    price: int


class Reversed(Serializer):
    """A format that only one side has."""

    name = "reversed"

    def dumps(self, element: object, /) -> bytes:
        return str(element).encode()[::-1]

    def loads(self, data: bytes, /) -> object:
        return data[::-1].decode()


class Offers:
    @hookimpl
    def penstock_serializers(self) -> list[Serializer]:
        return [Reversed()]


def service() -> penstock.Service:
    service = penstock.Service()

    @service.publisher("quote")
    async def quote() -> AsyncIterator[Quote]:
        yield Quote(1)
        yield Quote(2)

    @service.publisher("text/{word}", serializer="text")
    async def text(word: str) -> AsyncIterator[str]:
        yield word

    @service.publisher("bytes")
    async def plain() -> AsyncIterator[bytes]:
        yield b'{"price": 3}'

    @service.publisher("reversed", serializer=Reversed())
    async def backwards() -> AsyncIterator[str]:
        yield "abc"

    @service.request("ask")
    async def ask() -> Quote:
        return Quote(4)

    return service


async def read(name: str, url: str = "memory://a", **options: Any) -> list[Any]:
    async with (
        penstock.serve(service(), "memory://a"),
        penstock.subscribe(f"{url}#{name}", **options) as stream,
    ):
        return [element async for element in stream]


@pytest.mark.parametrize(
    ("name", "elements"),
    [
        ("quote", [{"price": 1}, {"price": 2}]),
        ("text/word", ["word"]),
        ("bytes", [b'{"price": 3}']),
    ],
)
async def test_without_a_serializer_elements_are_read_as_announced(
    name: str, elements: list[Any]
) -> None:
    """By a stream alone, of a connection, and of a source."""
    assert await read(name) == elements
    async with penstock.serve(service(), "memory://a"), penstock.connect("memory://a") as peer:
        async with peer.subscribe(name) as stream:
            assert [element async for element in stream] == elements
        async with penstock.subscribe(peer.source(name)) as stream:
            assert [element async for element in stream] == elements


@pytest.mark.parametrize("options", [{"serializer": "bytes"}, {"type": bytes}])
async def test_a_program_that_wants_bytes_gets_them(options: Any) -> None:
    """The announced serializer does not count if the program asks for bytes."""
    assert await read("quote", **options) == [b'{"price":1}', b'{"price":2}']


async def test_the_type_of_the_program_is_for_the_format_that_is_announced() -> None:
    """The name of the type is not compared: each side has another class."""
    assert await read("quote", type=Quote) == [Quote(1), Quote(2)]
    assert await read("bytes", type=Quote) == [Quote(3)]  # bytes may be anything


@pytest.mark.parametrize("name", ["quote", "text/word"])
async def test_a_mismatch_is_an_error_that_names_both(name: str) -> None:
    """Before the first element; the peer is told to stop."""
    announced = "json" if name == "quote" else "text"
    chosen = "text" if announced == "json" else "json"
    with pytest.raises(
        UsageError,
        match=f"with the serializer '{chosen}', and the publisher announces '{announced}'",
    ):
        await read(name, serializer=chosen)


async def test_a_serializer_that_is_not_installed_is_an_error_that_names_it() -> None:
    """A name of the peer selects what is installed here, and nothing else."""
    with pytest.raises(
        UsageError,
        match=r"announces the serializer 'reversed', which is not installed here; there is: bytes, json",
    ):
        await read("reversed")
    assert await read("reversed", registry=build_registry([Offers()])) == ["abc"]
    assert await read("reversed", serializer="bytes") == [b"cba"]


@pytest.mark.parametrize("options", [{"extensions": ()}, {"url": "reactivesocket+memory://a"}])
async def test_without_the_extension_elements_are_bytes(options: Any) -> None:
    """It is not active on such a connection."""
    assert await read("quote", **options) == [b'{"price":1}', b'{"price":2}']


async def test_reactivesocket_has_it_if_both_programs_say_so() -> None:
    """It is not among the extensions that are announced without that."""
    url = "reactivesocket+memory://a"
    async with penstock.serve(service(), "memory://a", extensions=[Content()]):
        async with penstock.subscribe(f"{url}#quote", extensions=[Content()]) as stream:
            assert [element async for element in stream] == [{"price": 1}, {"price": 2}]


async def test_observers_count_the_bytes_of_an_announced_stream() -> None:
    """They stay above what reads the elements."""
    recorder = Observer()
    assert await read("quote", registry=build_registry([recorder])) == [{"price": 1}, {"price": 2}]
    ended = [event for event in recorder.events if type(event).__name__ == "StreamEnded"]
    assert [(event.elements, event.bytes) for event in ended] == [(2, 22)]


async def test_an_element_that_cannot_be_read_as_announced_fails_its_stream() -> None:
    """So it does with a serializer of the program."""
    broken = penstock.Service()

    class Lying(Reversed):
        name = "json"

    @broken.publisher("lies", serializer=Lying())
    async def lies() -> AsyncIterator[str]:
        yield "abc"

    async with (
        penstock.serve(broken, "memory://a"),
        penstock.subscribe("memory://a#lies") as stream,
    ):
        with pytest.raises(ProtocolError, match="JSON"):
            await anext(stream)


async def test_an_answer_stays_bytes() -> None:
    """An answer of a handler does, and so does the first element of a publisher: `request` has a
    type for the rest.
    """
    async with penstock.serve(service(), "memory://a"), penstock.connect("memory://a") as peer:
        assert await peer.request("ask") == b'{"price":4}'
        assert await peer.request("quote") == b'{"price":1}'


def test_an_announcement_chooses_within_the_rules_of_the_program() -> None:
    """For `penstock cat`: a text stays a text, and bytes are read as JSON if that is asked for."""
    registry = build_registry()
    as_text = AnnouncedSerializer(registry, raw=frozenset({"bytes", "json"}))
    assert [as_text.find(name) for name in ("bytes", "json", None)] == [None, None, None]
    json = registry.serializer("json")
    as_json = AnnouncedSerializer(registry, otherwise=json)
    assert [as_json.find(name) for name in ("bytes", "json", None)] == [json, json, json]
    assert as_json.find("text") is registry.serializer("text")
    assert as_json.loads(b"1") == 1
    assert as_text.loads(b"1") == b"1"
    with pytest.raises(UsageError):
        as_json.dumps(1)
