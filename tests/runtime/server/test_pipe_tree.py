"""`penstock.inspect()` prints the open streams of a process, each with its pipe."""

import io
from collections.abc import AsyncIterator

import pytest
import trio

import penstock
from penstock import Service, connect, ops, pipe, serve, subscribe
from penstock.runtime import pipe_tree


async def numbers() -> AsyncIterator[int]:
    for number in range(7):
        yield number
    await trio.sleep_forever()


async def test_a_stream_shows_its_pipe_and_where_its_source_waits(autojump_clock) -> None:
    """Without a server and without a connection."""
    out = io.StringIO()
    async with subscribe(pipe(numbers, ops.batch(100), ops.map(len))), trio.open_nursery():
        await trio.sleep(1)
        penstock.inspect(out)
    lines = out.getvalue().splitlines()
    assert lines[0] == "1 streams are read in this process"
    assert "0 buffered" in lines[1]
    assert [line.split(",")[0].strip() for line in lines[2:4]] == ["map", "batch holds 7"]
    assert lines[4].strip().startswith("numbers")
    assert "test_pipe_tree.py:" in lines[4]


@pytest.mark.parametrize(
    "operator", [ops.debounce, ops.sample, ops.delay], ids=lambda op: op.__name__
)
async def test_an_element_that_waits_for_its_time_is_held(operator, autojump_clock) -> None:
    """`debounce` and `sample` hold the newest one, and `delay` holds all seven."""
    async with subscribe(pipe(numbers, operator(100))):
        await trio.sleep(1)
        held = 7 if operator is ops.delay else 1
        assert f"{operator.__name__} holds {held}" in pipe_tree()


async def test_a_stream_stands_below_the_generator_that_reads_it(autojump_clock) -> None:
    """So a person sees which stream waits for which."""

    async def outer() -> AsyncIterator[int]:
        async with subscribe(numbers, demand=2) as inner:
            async for number in inner:
                yield number

    async with subscribe(outer, demand=3) as stream:
        await trio.sleep(1)
        text = pipe_tree()
        assert await anext(stream) == 0
    lines = text.splitlines()
    depths = [len(line) - len(line.lstrip()) for line in lines]
    assert depths == [0, 2, 4, 6, 8]
    assert lines[2].strip().endswith("outer")
    assert "numbers" in lines[4]


async def test_streams_over_connections_say_what_they_wait_for(autojump_clock) -> None:
    """In both directions."""
    service = Service()
    service.publisher("numbers", serializer="json")(numbers)
    async with (
        serve(service, "memory://a"),
        connect("memory://a") as peer,
        peer.subscribe("numbers", serializer="json"),
    ):
        await trio.sleep(1)
        text = pipe_tree()
    assert "2 streams cross connections" in text
    assert "numbers to " in text
    assert "waits for publisher" in text
    assert "test_pipe_tree.py:" in text


def test_it_prints_to_standard_error_outside_of_trio(capsys) -> None:
    """A program that has no run of trio has no streams, and gets no error."""
    penstock.inspect()
    assert capsys.readouterr().err.startswith("0 streams are read")
