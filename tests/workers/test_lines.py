"""The lines that workers print pass through their parent."""

import os
import sys

import pytest
import trio
import trio.testing

from penstock.workers._lines import LONGEST, LineOutput, standard_outputs

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="it has no such pipes")

LINES = 15


class Source(trio.abc.ReceiveStream):
    """The output of a worker, in parts."""

    def __init__(self, parts: list[bytes]) -> None:
        self._parts = parts

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        await trio.lowlevel.checkpoint()
        return self._parts.pop(0) if self._parts else b""

    async def aclose(self) -> None:
        await trio.lowlevel.checkpoint()


async def read_all(file: int) -> bytes:
    """Read slowly, until the other end is closed."""
    data = b""
    async with trio.lowlevel.FdStream(file) as stream:
        while part := await stream.receive_some(1000):
            data += part
            await trio.lowlevel.checkpoint()
    return data


async def test_several_workers_share_a_pipe_that_is_read_slowly() -> None:
    """A pipe takes a part of the bytes. Lines stay whole, and no two tasks wait for it."""
    reading, writing = os.pipe()
    lock = trio.Lock()
    outputs = LineOutput(writing, lock), LineOutput(writing, lock)
    read: list[bytes] = []

    async def read_it() -> None:
        read.append(await read_all(reading))

    async with trio.open_nursery() as reader:
        reader.start_soon(read_it)
        async with trio.open_nursery() as nursery:
            for letter, output in zip((b"a", b"b", b"c", b"d"), outputs * 2, strict=True):
                parts = [letter * 3_000, letter * 6_000 + b"\n"] * LINES
                nursery.start_soon(output.pass_on, Source(parts))
        os.close(writing)
    assert sorted(read[0].splitlines()) == sorted(
        letter * 9_000 for letter in (b"a", b"b", b"c", b"d") for _ in range(LINES)
    )


async def test_a_line_without_an_end_is_written_in_parts() -> None:
    """The parent must not keep it. The last line of a worker needs no end."""
    reading, writing = os.pipe()
    read: list[bytes] = []

    async def read_it() -> None:
        read.append(await read_all(reading))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(read_it)
        parts = [b"x" * LONGEST, b"end"]
        await LineOutput(writing, trio.Lock()).pass_on(Source(parts))
        os.close(writing)
    assert read == [b"x" * LONGEST + b"\nend\n"]


async def test_nothing_is_written_into_a_file_that_is_not_the_output(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """If standard output was closed, the system gives its number to the next file: a socket of a
    client, for example.
    """
    written: list[object] = []
    monkeypatch.setattr(os, "write", lambda *each: written.append(each))
    for name in ("__stdout__", "__stderr__"):
        monkeypatch.setattr(sys, name, None)
    for output in standard_outputs():
        await output.pass_on(Source([b"a line\n"]))
    assert written == []


async def test_an_output_that_fails_stops_no_worker() -> None:
    """The disk is full, or the reader has left."""
    reading, writing = os.pipe()
    os.close(reading)
    source = Source([b"one\n", b"two\n"])
    await LineOutput(writing, trio.Lock()).pass_on(source)
    assert await source.receive_some() == b""
    os.close(writing)
