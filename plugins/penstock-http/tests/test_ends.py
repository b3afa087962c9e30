"""The failure of a publisher, as a client of HTTP gets it: after every element that was given."""

from collections.abc import AsyncIterator

import pytest

import penstock

service = penstock.Service()


@service.publisher("burst")
async def burst(sizes: str) -> AsyncIterator[bytes]:
    """Yield elements of the sizes that the text lists, and fail."""
    for size in sizes.split("."):
        yield bytes(int(size))
    raise penstock.PublicError("out of paper")


@service.publisher("blocks", element_size=5)
async def blocks(counts: str) -> AsyncIterator[bytes]:
    """Yield blocks of as many elements as the text lists, and fail."""
    for count in counts.split("."):
        yield bytes(5 * int(count))
    raise penstock.PublicError("out of paper")


@pytest.mark.parametrize("demand", [1, 3, 256])
@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("burst?sizes=20000.20000.5.5", [20_000, 20_000, 5, 5]),
        ("burst?sizes=200000.0.16385", [200_000, 0, 16_385]),
        ("blocks?counts=7.1", [5] * 8),
    ],
)
async def test_every_element_is_read_before_the_failure(
    name: str, sizes: list[int], demand: int
) -> None:
    """Large ones, small ones, and elements of a block that are requested one by one."""
    got: list[int] = []
    async with penstock.serve(service, "http://127.0.0.1:0", on_violation=lambda _: None) as server:
        url = f"{server.addresses[0]}/p/{name}"
        with pytest.raises(penstock.PublisherFailed, match="out of paper"):
            async with penstock.subscribe(url, demand=demand) as stream:
                async for element in stream:
                    got.append(len(element))  # noqa: PERF401 (those before the failure count)
    assert got == sizes
