"""The end of a publisher, as the reader of a client gets it: after every element that was given."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.api import PublicError, PublisherFailed
from tests._shells import SHELLS, Shell, over_each_shell
from tests.contracts._trio_server import Served

EACH_SHELL = pytest.mark.parametrize("name", SHELLS)
"""A name, and not the fixture: each example needs a new shell."""


async def read_all(stream: Any, form: str) -> tuple[bytes, str]:
    """Return all that a stream delivers in one piece, and the text of its failure."""
    got = bytearray()
    pieces = {"elements": lambda: stream, "batches": stream.batches, "buffers": stream.buffers}
    try:
        async for piece in pieces[form]():
            got += b"".join(piece) if isinstance(piece, list) else piece
    except PublisherFailed as error:
        return bytes(got), str(error)
    return bytes(got), ""


async def read_slowly(stream: Any) -> tuple[bytes, str]:
    """Read as `read_all`, with one request for each element, after the one before has come."""
    got = bytearray()
    try:
        while True:
            stream.request(1)
            got += await anext(stream)
    except StopAsyncIteration:
        return bytes(got), ""
    except PublisherFailed as error:
        return bytes(got), str(error)


@pytest.mark.parametrize(
    ("name", "protocol"), [*((name, "rsio+") for name in SHELLS), ("trio", "reactivesocket+")]
)
@given(
    sizes=st.lists(st.sampled_from([0, 1, 5, 300, 16_384, 16_385, 20_000, 200_000]), max_size=8),
    end=st.sampled_from(["", "out_of_paper"]),
    form=st.sampled_from(["elements", "batches", "slowly"]),
    demand=st.sampled_from([1, 2, 256]),
)
@settings(max_examples=15)
def test_every_element_is_read_before_the_end(
    name: str,
    served: Served,
    protocol: str,
    sizes: list[int],
    end: str,
    form: str,
    demand: int,
) -> None:
    """Of every size, by element and by batch, with demand at once and later; the publisher may
    fail or complete right after its last element.
    """

    async def program(shell: Shell) -> None:
        publisher = f"burst?sizes={'.'.join(map(str, sizes))}&end={end}"
        async with shell.connect(protocol + served.url) as peer:
            async with peer.subscribe(
                publisher, demand=0 if form == "slowly" else demand
            ) as stream:
                got = await (read_slowly(stream) if form == "slowly" else read_all(stream, form))
        assert got == (b"".join(bytes([65 + n]) * size for n, size in enumerate(sizes)), end)

    shell = SHELLS[name]()
    shell.run(program(shell))


@pytest.mark.slow
@EACH_SHELL
@given(
    blocks=st.lists(st.sampled_from([1, 2, 300, 5_000]), max_size=4),
    end=st.sampled_from(["", "out_of_paper"]),
    form=st.sampled_from(["elements", "batches", "buffers", "slowly"]),
    demand=st.sampled_from([1, 3, 256]),
)
@settings(max_examples=8)
def test_every_element_of_a_block_is_read_before_the_end(
    name: str, served: Served, blocks: list[int], end: str, form: str, demand: int
) -> None:
    """Elements of a fixed size are packed. The end waits for those that are not requested yet."""
    if form == "slowly":
        blocks = [min(block, 7) for block in blocks]

    async def program(shell: Shell) -> None:
        publisher = f"burst of fives?blocks={'.'.join(map(str, blocks))}&end={end}"
        async with shell.connect(served.url) as peer:
            async with peer.subscribe(
                publisher, demand=0 if form == "slowly" else demand
            ) as stream:
                got = await (read_slowly(stream) if form == "slowly" else read_all(stream, form))
        assert got == (b"".join(bytes([65 + n]) * (5 * b) for n, b in enumerate(blocks)), end)

    shell = SHELLS[name]()
    shell.run(program(shell))


@over_each_shell
async def test_the_server_reads_every_element_of_a_client_before_its_failure(
    shell: Shell, served: Served
) -> None:
    """A client publishes through the same session. Its elements go in parts, or in a run."""

    def burst() -> Iterator[bytes]:
        for size in (20_000, 20_000, 5, 5):
            yield bytes(size)
        raise PublicError("out of paper")

    async with shell.connect(
        served.url, publishers={"burst": burst}, on_violation=lambda _: None
    ) as peer:
        assert await peer.request("measure?name=burst") == b"20000,20000,5,5,out of paper"
