"""Elements that a serializer cannot convert, over both protocols: the stream ends with the
reason, and the connection goes on.
"""

from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from penstock.api import PenstockError, PluginError, ProtocolError, PublisherFailed, UsageError
from penstock.runtime import Service, connect, serve
from penstock.spi import Serializer, dumped_bytes, load_elements


class Broken(Serializer):
    """Does what it is told to do wrongly."""

    name = "broken"

    def __init__(self, dumps: Any = b"x", loads: Any = "x") -> None:
        self._dumps = dumps
        self._loads = loads

    def dumps(self, element: object, /) -> bytes:
        if isinstance(self._dumps, Exception):
            raise self._dumps
        return self._dumps  # type: ignore[no-any-return]  # also a value that is not bytes

    def loads(self, data: bytes, /) -> object:
        if isinstance(self._loads, Exception):
            raise self._loads
        return self._loads


def service(serializer: Serializer) -> Service:
    made = Service()

    @made.publisher("broken", serializer=serializer)
    async def broken() -> AsyncIterator[int]:
        for number in range(3):
            yield number

    made.publish("list", [0, 1, 2], serializer=serializer)

    @made.publisher("bytes")
    async def sound() -> AsyncIterator[bytes]:
        yield b"1"
        yield b"{}"
        yield b"[1"

    return made


@pytest.mark.parametrize("name", ["broken", "list"])
@pytest.mark.parametrize("protocol", ["rsio", "reactivesocket"])
@pytest.mark.parametrize(
    ("result", "says"),
    [
        (
            "text",
            r"the serializer 'broken' returned str from dumps for an element of type int; encode the text",
        ),
        (5, r"returned int from dumps .*; return bytes"),
        (None, r"returned NoneType from dumps .*; return bytes"),
        (ValueError("a bug"), "a bug"),
    ],
    ids=["text", "number", "None", "raises"],
)
async def test_a_serializer_that_cannot_send_ends_its_stream_only(
    protocol: str, name: str, result: Any, says: str
) -> None:
    """The server reports it; the peer learns that the publisher failed,
    and its other streams go on.
    """
    reported: list[BaseException] = []
    async with (
        serve(
            service(Broken(dumps=result)), f"{protocol}+memory://s", on_violation=reported.append
        ) as server,
        connect(server.addresses[0]) as peer,
    ):
        async with peer.subscribe(name, serializer="bytes") as stream:
            with pytest.raises(PublisherFailed):
                await anext(stream)
        async with peer.subscribe("bytes") as stream:
            assert await anext(stream) == b"1"
    assert len(reported) == 1
    with pytest.raises((PluginError, ValueError), match=says):
        raise reported[0]


@pytest.mark.parametrize("protocol", ["rsio", "reactivesocket"])
@pytest.mark.parametrize(
    ("result", "kind", "says"),
    [
        (
            None,
            PluginError,
            r"^element 0 \(1 bytes\): the serializer 'broken' returned None from loads, which is never an element",
        ),
        (
            KeyError("x"),
            PluginError,
            r"^element 0 \(1 bytes\): the serializer 'broken' raised KeyError\('x'\), where only ProtocolError",
        ),
        (
            ProtocolError("no"),
            ProtocolError,
            r"^element 0 \(1 bytes\): no; is serializer='broken' what the publisher has, too\?$",
        ),
        (UsageError("no"), UsageError, r"^element 0 \(1 bytes\): no$"),
    ],
    ids=["None", "raises", "peer", "program"],
)
async def test_a_serializer_that_cannot_receive_ends_its_stream_only(
    protocol: str, result: Any, kind: type[Exception], says: str
) -> None:
    """The message names the element by its place and length."""
    async with (
        serve(service(Broken()), f"{protocol}+memory://s") as server,
        connect(server.addresses[0]) as peer,
    ):
        async with peer.subscribe("bytes", serializer=Broken(loads=result)) as stream:
            with pytest.raises(kind, match=says):
                await anext(stream)
        async with peer.subscribe("bytes") as stream:
            assert await anext(stream) == b"1"


@pytest.mark.parametrize("protocol", ["rsio", "reactivesocket"])
async def test_the_elements_before_one_that_does_not_decode_arrive(protocol: str) -> None:
    """Its place is its number in the stream, counted from 0."""
    async with (
        serve(service(Broken()), f"{protocol}+memory://s") as server,
        connect(server.addresses[0]) as peer,
    ):
        got: list[Any] = []
        async with peer.subscribe("bytes", serializer="json") as stream:
            with pytest.raises(
                ProtocolError,
                match=r"^element 2 \(2 bytes\): the element is not JSON \(JSONDecodeError at character 2\)",
            ):
                async for element in stream:
                    got.append(element)  # noqa: PERF401 (the elements before the error are kept)
        assert got == [1, {}]
        async with peer.subscribe("bytes", type=int) as stream:
            with pytest.raises(
                ProtocolError,
                match=r"^element 1 \(2 bytes\): the element is not of type int: expected `int`, got `obj",
            ):
                assert [number async for number in stream] == []


def test_what_dumps_returns_may_be_any_bytes() -> None:
    """They are copied, because the serializer may use them again."""
    buffer = bytearray(b"x")
    data = dumped_bytes(buffer, Broken(), 1)
    buffer[:] = b"y"
    assert (data, dumped_bytes(memoryview(b"x"), Broken(), 1)) == (b"x", b"x")


def test_the_error_has_the_serializers_own_as_its_cause() -> None:
    """For a traceback that shows where it was raised. The elements before it are loaded."""
    cause = ProtocolError("no", reason="limit")
    loaded, error = load_elements(Broken(loads=cause), [b"a", b"b"], 7)
    assert isinstance(error, ProtocolError)
    assert error.__cause__ is cause
    assert error.reason == "limit"
    assert (loaded, str(error).startswith("element 7 (1 bytes): ")) == ([], True)
    loaded, error = load_elements(Broken(loads=None), [b"a"], 7)
    assert isinstance(error, PenstockError)


class Texts(Serializer):
    """Loads texts."""

    name = "texts"

    def dumps(self, element: object, /) -> bytes:
        return str(element).encode()

    def loads(self, data: bytes, /) -> object:
        return data.decode()


NO_LISTS_OF_ALL: list[Any] = [
    [],
    ["1"],
    None,
    5,
    ("1", "2"),
    iter(["1", "2"]),
    ["1", "2", "3"],
    ["1", None],
]


@pytest.mark.parametrize("returned", NO_LISTS_OF_ALL, ids=lambda each: type(each).__name__)
def test_a_serializer_that_does_not_return_a_list_of_all_is_asked_for_each_element(
    returned: Any,
) -> None:
    """Its elements must not be lost, and the connection must not end."""

    class Wrong(Texts):
        def loads_many(self, elements: Sequence[bytes], /) -> list[Any]:
            return returned  # type: ignore[no-any-return]  # a mistake on purpose

    assert load_elements(Wrong(), [b"1", b"2"], 0) == (["1", "2"], None)


def test_a_list_of_a_subclass_is_taken_as_a_list() -> None:
    """A serializer that loads into its own kind of list is not called for each element."""

    class Own(list[Any]):
        pass

    class Loader(Texts):
        def loads_many(self, elements: Sequence[bytes], /) -> list[Any]:
            return Own(["one", "two"])

    loaded, error = load_elements(Loader(), [b"1", b"2"], 0)
    assert (loaded, type(loaded), error) == (["one", "two"], list, None)
