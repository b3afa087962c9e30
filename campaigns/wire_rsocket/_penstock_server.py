"""What `penstock tck` needs, served by penstock at the given URLs: the service of
examples/conformance_service.py, and channels. Prints its port if the URL has none.
"""

import importlib.util
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import trio

import penstock
from penstock.api import Subscription

EXAMPLE = Path(__file__).parents[2] / "examples/conformance_service.py"
URLS = ["rsocket+tcp://127.0.0.1:0"]


class Greedy:
    """A subscriber that requests 2^30 elements at first, and again after each one."""

    def on_subscribe(self, subscription: Subscription, /) -> None:
        """Request the first ones."""
        self._subscription = subscription
        subscription.request(1 << 30)

    def on_next(self, _element: bytes, /) -> None:
        """Request more."""
        self._subscription.request(1 << 30)

    def on_error(self, error: BaseException, /) -> None:
        """Do nothing."""

    def on_complete(self, /) -> None:
        """Do nothing."""


def service_of() -> penstock.Service:
    """Return the service."""
    spec = importlib.util.spec_from_file_location("conformance_service", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    service: penstock.Service = example.service

    @service.publisher("channel")
    async def channel(elements: penstock.Source[bytes]) -> AsyncIterator[bytes]:
        async with penstock.subscribe(elements, demand=4) as stream:
            async for element in stream:
                yield element

    @service.publisher("pair")
    def pair(elements: penstock.Source[bytes]) -> penstock.Source[bytes]:
        return elements.take(2)

    @service.publisher("greedy")
    async def greedy(elements: penstock.Source[bytes]) -> AsyncIterator[bytes]:
        async with trio.open_nursery() as nursery:
            elements.publisher(nursery).subscribe(Greedy())
            await trio.Event().wait()  # it answers nothing
        yield b"never"

    return service


async def main() -> None:
    """Serve until the program is stopped."""
    service = service_of()
    urls = sys.argv[1:] or URLS
    async with penstock.serve(service, *urls, resume=True, on_violation=lambda _: None) as server:
        print(server.addresses[0].port, flush=True)
        await trio.sleep_forever()


if __name__ == "__main__":
    trio.run(main)
