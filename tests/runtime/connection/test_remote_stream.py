"""Elements of fixed size as packed memory, and elements that are loaded when they are read."""

import gc
import weakref
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from penstock.api import PluginError, ProtocolError, Subscription, UsageError
from penstock.elements import JsonSerializer
from penstock.runtime import Service, connect, serve, subscribe
from penstock.runtime.connection._decoder import Decoder
from penstock.runtime.connection._remote_stream import (
    FEW_WAITING,
    LOADED_BYTES,
    MOST_LOADED,
    RemoteStream,
)
from penstock.spi import Serializer
from tests.runtime._services import named, numbers_service


@dataclass
class Quote:
    symbol: str
    price: float


async def test_elements_of_fixed_size_can_be_read_as_memory(url: str) -> None:
    """Packed there, packed here, counted as elements; or read one by one."""
    service = Service()

    @service.publisher("ints", element_size=4)
    async def ints() -> AsyncIterator[bytes]:
        for number in range(0, 1000, 10):
            yield b"".join(each.to_bytes(4, "big") for each in range(number, number + 10))

    expected = b"".join(each.to_bytes(4, "big") for each in range(1000))
    async with serve(service, url) as server:
        async with subscribe(named(server.addresses[0], "ints"), demand=64) as stream:
            got = b""
            async for piece in stream.buffers():
                assert len(piece) <= 64 * 4
                got += piece
            assert got == expected
            assert stream.statistics().taken == 1000
        async with (
            connect(server.addresses[0]) as peer,
            peer.subscribe("ints", demand=7) as by_element,
        ):
            assert b"".join([each async for each in by_element]) == expected
            assert by_element.element_size == 4


async def test_buffers_of_a_stream_without_a_fixed_size_are_refused() -> None:
    """The ends of its elements would be lost."""
    async with (
        serve(numbers_service(), "memory://test") as server,
        connect(server.addresses[0]) as peer,
    ):
        async with peer.subscribe("endless") as stream:
            with pytest.raises(UsageError, match="no fixed size"):
                await anext(stream.buffers())


class Spy(Serializer):
    """Loads texts, and notes how many at a time.
    It refuses the text "bad", and returns None for the text "none".
    """

    name = "spy"

    def __init__(self) -> None:
        self.loaded: list[int] = []

    def dumps(self, element: object, /) -> bytes:
        return str(element).encode()

    def loads(self, data: bytes, /) -> object:
        if data == b"bad":
            raise ProtocolError("this is bad")
        return None if data == b"none" else data.decode()

    def loads_many(self, elements: Sequence[bytes], /) -> list[Any]:
        self.loaded.append(len(elements))
        return super().loads_many(elements)


class Upstream(Subscription):
    def __init__(self) -> None:
        self.cancels = 0

    def request(self, n: int, /) -> None: ...

    def cancel(self, /) -> None:
        self.cancels += 1


def late(serializer: Serializer, demand: int = 1024) -> tuple[RemoteStream[Any], Decoder, Upstream]:
    """Return a stream, the decoder above it, and the publisher of that decoder."""
    stream, upstream = RemoteStream[Any](demand=demand), Upstream()
    decoder = Decoder(stream, serializer)
    decoder.on_subscribe(upstream)
    return stream, decoder, upstream


async def test_elements_are_loaded_when_the_reader_takes_them() -> None:
    """As bytes they cost the collector nothing. A batch has at most MOST_LOADED elements."""
    spy = Spy()
    stream, decoder, _ = late(spy)
    decoder.on_next_many([b"x"] * 600)
    decoder.on_next(b"y")
    assert (spy.loaded, stream.statistics().buffered, stream.held()) == ([], 601, 601)
    decoder.on_complete()
    batches = [len(batch) async for batch in stream.batches()]
    assert batches == spy.loaded == [MOST_LOADED, MOST_LOADED, 601 - 2 * MOST_LOADED]
    assert stream.statistics().taken == 601


async def test_elements_are_loaded_for_a_reader_by_element() -> None:
    """In order, and at most half of the demand at a time."""
    spy = Spy()
    stream, decoder, _ = late(spy, demand=100)
    decoder.on_next_many([str(number).encode() for number in range(100)])
    decoder.on_complete()
    assert [element async for element in stream] == [str(number) for number in range(100)]
    assert spy.loaded == [50, 50]


async def test_few_long_elements_are_loaded_at_a_time() -> None:
    """The bytes bound how long other tasks wait, and the first element that exceeds them is also
    loaded.
    """
    spy = Spy()
    stream, decoder, _ = late(spy)
    decoder.on_next_many([b"x" * (LOADED_BYTES // 4)] * 11 + [b"y" * (2 * LOADED_BYTES)] * 2)
    decoder.on_complete()
    assert [len(batch) async for batch in stream.batches()] == [5, 5, 2, 1]


@pytest.mark.parametrize(("bad", "failure"), [(b"bad", ProtocolError), (b"none", PluginError)])
@pytest.mark.parametrize("completes", [False, True])
async def test_an_element_that_is_not_loaded_ends_the_stream(
    *, bad: bytes, failure: type[Exception], completes: bool
) -> None:
    """The failure comes after the elements before it, with its position and length.
    The peer is told, unless it has ended the stream.
    """
    stream, decoder, upstream = late(Spy())
    decoder.on_next_many([b"a"] * 300 + [bad] + [b"b"] * 300)
    if completes:
        decoder.on_complete()
    got: list[str] = []
    with pytest.raises(failure, match=rf"element 300 \({len(bad)} bytes\)"):
        async for batch in stream.batches():
            got += batch
    decoder.on_next(b"c")
    now = stream.statistics()
    assert (got, now.taken, now.buffered, now.state.value) == (["a"] * 300, 300, 0, "failed")
    assert upstream.cancels == (not completes)


async def test_elements_of_the_slice_are_read_before_the_first_of_a_list_fails() -> None:
    """A reader that goes over from elements to batches loses none."""
    stream, decoder, _ = late(Spy(), demand=8)
    decoder.on_next_many([b"1", b"2", b"3", b"4", b"bad"])
    assert await anext(stream) == "1"
    batches = stream.batches()
    assert await anext(batches) == ["2", "3", "4"]
    with pytest.raises(ProtocolError, match="element 4"):
        await anext(batches)


async def test_a_cancel_while_elements_are_loaded_drops_them() -> None:
    """Code of the program may run in `loads`."""

    class Cancels(Spy):
        def loads(self, data: bytes, /) -> object:
            stream.cancel()
            return 1

    stream, decoder, upstream = late(Cancels())
    decoder.on_next_many([b"1", b"2"])
    assert [element async for element in stream] == []
    assert (upstream.cancels, stream.statistics().taken, stream.statistics().buffered) == (1, 0, 0)


async def test_a_stream_that_was_not_read_does_not_keep_its_connection() -> None:
    """It keeps the decoder that loads its elements. The decoder drops both sides with the end."""
    stream, decoder, upstream = late(Spy())
    decoder.on_next(b"1")
    decoder.on_complete()
    gone = weakref.ref(upstream)
    del upstream
    assert gone() is None
    assert [element async for element in stream] == ["1"]


async def test_a_reader_that_is_far_behind_gets_all_elements_in_order() -> None:
    """More than `FEW_WAITING` wait in a deque: the rest is not copied each time that some of them
    are loaded.
    """
    stream, decoder, _ = late(Spy(), demand=10 * FEW_WAITING)
    expected = [str(number) for number in range(3 * FEW_WAITING)]
    decoder.on_next_many([each.encode() for each in expected])
    got = [*await anext(stream.batches())]
    waiting: Any = stream._arrived
    got += await anext(stream.batches())
    assert stream._arrived is waiting
    decoder.on_next_many([b"more"])
    decoder.on_complete()
    assert (stream.statistics().taken, stream.statistics().buffered) == (
        len(got),
        len(expected) + 1 - len(got),
    )
    got += [element async for element in stream]
    assert got == [*expected, "more"]


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
async def test_a_serializer_that_does_not_return_a_list_of_all_is_asked_for_each_element(
    returned: Any,
) -> None:
    """Its elements must not be lost, and the connection must not end."""

    class Wrong(Spy):
        def loads_many(self, elements: Sequence[bytes], /) -> list[Any]:
            return returned

    stream, decoder, _ = late(Wrong())
    decoder.on_next_many([b"1", b"2"])
    decoder.on_complete()
    assert [element async for element in stream] == ["1", "2"]


async def test_a_list_of_a_subclass_is_taken_as_a_list() -> None:
    """A serializer that loads into its own kind of list is not called for each element."""

    class Own(list[Any]):
        pass

    class Loader(Spy):
        def loads_many(self, elements: Sequence[bytes], /) -> list[Any]:
            return Own(super().loads_many(elements))

        def loads(self, data: bytes, /) -> object:
            calls.append(data)
            return super().loads(data)

    calls: list[bytes] = []
    stream, decoder, _ = late(Loader())
    decoder.on_next_many([b"1", b"2"])
    decoder.on_complete()
    assert [element async for element in stream] == ["1", "2"]
    assert calls == [b"1", b"2"]


async def test_records_of_a_stream_do_not_start_the_collector() -> None:
    """While they were loaded when they arrived, it ran once for each list, and all objects of
    the process were looked at after 100,000.
    """
    serializer = JsonSerializer().for_type(Quote)
    stream, decoder, _ = late(serializer)
    elements = [serializer.dumps(Quote("a", 1.0))] * 512
    decoder.on_next_many(elements)
    batches = stream.batches()
    await anext(batches)
    gc.collect()
    before = sum(each["collections"] for each in gc.get_stats())
    for _ in range(100):
        decoder.on_next_many(elements)
        batch = await anext(batches)
        batch = await anext(batches)
        assert len(batch) == MOST_LOADED
    assert sum(each["collections"] for each in gc.get_stats()) - before <= 2
