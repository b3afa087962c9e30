"""Each Stream over a real connection to a server of penstock:
elements, lists, memory, types, demand, and the end of the block.
"""

from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from penstock.api import StreamState, UsageError
from tests._shells import SHELLS
from tests.contracts._trio_server import Quote, Served, serving

Body = Callable[[Any, Served], Awaitable[None]]


def of_each_client(body: Body) -> Callable[[str, Served], None]:
    """Run a test with the peer of a client of each kind, and with the server's record."""

    def test(kind: str, served: Served) -> None:
        shell = SHELLS[kind]()

        async def program() -> None:
            async with shell.connect(served.url) as peer:
                await body(peer, served)

        shell.run(program())

    test.__name__, test.__doc__ = body.__name__, body.__doc__
    return pytest.mark.parametrize("kind", SHELLS)(test)


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with serving() as running:
        yield running


@of_each_client
async def test_elements_arrive_in_order(peer: Any, served: Served) -> None:
    """Completion ends the loop, and the statistics have the counts."""
    async with peer.subscribe("numbers?count=1000", demand=16) as stream:
        assert [element async for element in stream] == [b"%d" % number for number in range(1000)]
        now = stream.statistics()
    assert (now.state, now.taken, now.buffered) == (StreamState.COMPLETED, 1000, 0)


@of_each_client
async def test_batches_are_the_same_elements(peer: Any, served: Served) -> None:
    """No batch is empty, and none is longer than the demand."""
    async with peer.subscribe("numbers?count=5000", demand=64) as stream:
        batches = [batch async for batch in stream.batches()]
    assert [element for batch in batches for element in batch] == [
        b"%d" % number for number in range(5000)
    ]
    assert 0 < min(map(len, batches)) <= max(map(len, batches)) <= 64


@of_each_client
async def test_demand_of_one_moves_one_element_at_a_time(peer: Any, served: Served) -> None:
    """The publisher is asked for the next element when the reader wants it."""
    async with peer.subscribe("forever", demand=1) as stream:
        number = 0
        async for element in stream:
            assert element == b"%d" % number
            number += 1
            assert stream.statistics().requested == number
            if number == 20:
                break


@of_each_client
async def test_a_stream_is_left_in_the_middle_and_read_on(peer: Any, served: Served) -> None:
    """A second loop, and then batches, go on after the last element;
    nothing is lost between them.
    """
    got = []
    async with peer.subscribe("numbers?count=300", demand=32) as stream:
        for most in (5, 7):
            async for element in stream:
                got.append(element)
                if len(got) == most:
                    break
        async for batch in stream.batches():
            got += batch
    assert got == [b"%d" % number for number in range(300)]


@of_each_client
async def test_manual_demand_brings_what_was_asked_for(peer: Any, served: Served) -> None:
    """With demand=0 the program requests, and the publisher sends no more."""
    async with peer.subscribe("numbers?count=5", demand=0) as stream:
        stream.request(2)
        got = []
        async for element in stream:
            got.append(element)
            if len(got) == 2:
                assert stream.statistics().starved
                stream.request(10)
    assert got == [b"0", b"1", b"2", b"3", b"4"]


@of_each_client
async def test_packed_elements_come_as_elements_and_as_memory(peer: Any, served: Served) -> None:
    """The publisher has a fixed size; a stream without one has no memory."""
    async with peer.subscribe("packed?count=100") as stream:
        assert [element async for element in stream] == [b"%04d" % number for number in range(100)]
        assert stream.element_size == 4
    async with peer.subscribe("packed?count=100", demand=40) as stream:
        pieces = [piece async for piece in stream.buffers()]
        assert b"".join(pieces) == b"".join(b"%04d" % number for number in range(100))
        assert max(map(len, pieces)) <= 40 * 4
        assert stream.statistics().taken == 100
    async with peer.subscribe("numbers") as stream:
        with pytest.raises(UsageError, match="no fixed size"):
            await anext(stream.buffers())


@of_each_client
async def test_elements_have_the_type_that_was_asked_for(peer: Any, served: Served) -> None:
    """A dataclass is JSON; an element that does not decode ends its stream only."""
    async with peer.subscribe("quotes", type=Quote) as stream:
        assert [quote async for quote in stream] == [Quote("EURUSD", number) for number in range(3)]
    async with peer.subscribe("numbers?count=3", type=str) as stream:
        assert [text async for text in stream] == ["0", "1", "2"]
    async with peer.subscribe("failing", serializer="json") as stream:
        with pytest.raises(Exception, match=r"^element 0 \(3 bytes\)"):
            await anext(stream)
    assert await peer.request("echo") == b"nothing"


@of_each_client
async def test_large_elements_keep_within_the_window(peer: Any, served: Served) -> None:
    """Elements of 1 MiB arrive in parts,
    and no more of them are under way than fit into the window.
    """
    async with peer.subscribe("numbers?count=6&size=1048576", window_bytes=2 << 20) as stream:
        async for element in stream:
            assert len(element) == 1 << 20
            assert stream.statistics().outstanding <= 4


@of_each_client
async def test_leaving_a_stream_stops_its_publisher(peer: Any, served: Served) -> None:
    """The body may leave it by raising."""
    served.stopped.clear()
    with pytest.raises(ZeroDivisionError):
        async with peer.subscribe("forever") as stream:
            _ = 1 / len((await anext(stream))[1:])
    while "forever" not in served.stopped:
        await peer.request("echo")
