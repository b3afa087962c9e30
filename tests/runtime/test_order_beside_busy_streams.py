"""Elements of a publisher that signals inside `request` keep their order beside busy streams,
and all counts return to zero.
"""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import trio
import trio.testing

from penstock.api import Publisher, Subscriber, Subscription
from penstock.runtime import Service, connect, serve

COUNT = 2_000
TEXT = 8
LARGE = 20_000


class InsideRequest(Publisher[bytes], Subscription):
    """Signals numbered elements inside `request`, as rule 3.2 allows.
    Each `every`-th of them is large.
    """

    def __init__(self, every: int) -> None:
        self._every = every
        self._number = self._due = 0
        self._is_signalling = self._is_over = False

    def subscribe(self, subscriber: Subscriber[bytes], /) -> None:
        self._subscriber = subscriber
        subscriber.on_subscribe(self)

    def cancel(self, /) -> None:
        self._is_over = True

    def request(self, n: int, /) -> None:
        self._due += n
        if self._is_signalling:
            return
        self._is_signalling = True
        while self._due and not self._is_over:
            self._due -= 1
            self._number += 1
            is_large = self._every and self._number % self._every == 0
            self._subscriber.on_next(str(self._number).encode().rjust(LARGE if is_large else TEXT))
        self._is_signalling = False


def _service() -> Service:
    service = Service()

    @service.publisher("inside/{every}")
    def inside(every: int) -> Publisher[bytes]:
        return InsideRequest(every)

    @service.publisher("busy")
    async def busy() -> AsyncIterator[bytes]:
        while True:
            yield bytes(10_000)

    @service.request("echo")
    async def echo(payload: bytes) -> bytes:
        return payload

    return service


@pytest.mark.parametrize("every", [0, 3], ids=["small elements", "every third is large"])
@pytest.mark.parametrize(
    "url", ["tcp://127.0.0.1:0", "reactivesocket+tcp://127.0.0.1:0", "rsio+memory://order"]
)
async def test_elements_keep_their_order(url: str, every: int) -> None:
    """And none of them waits for the busy streams."""
    async with serve(_service(), url) as server, connect(server.addresses[0]) as peer:
        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(_read, peer)
            async with peer.subscribe(f"inside/{every}", demand=1024) as stream:
                numbers = [
                    int(await anext(stream)) for _ in range(COUNT if not every else COUNT // 10)
                ]
            nursery.cancel_scope.cancel()
        assert numbers == list(range(1, len(numbers) + 1))


async def test_requests_that_waited_for_room_owe_nothing_at_the_end(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """A debt that is left lowers the share of every later publisher of the connection."""
    async with (
        serve(_service(), "rsio+memory://owed") as server,
        connect(server.addresses[0]) as peer,
    ):
        async with trio.open_nursery() as busy:
            for _ in range(3):
                busy.start_soon(_read, peer)
            async with trio.open_nursery() as nursery:
                for _ in range(100):
                    nursery.start_soon(peer.request, "echo", b"x")
            busy.cancel_scope.cancel()
        await trio.sleep(1)
        connection: Any = server.peers[0]
        outbox = connection._connection.session.outbox
        assert (outbox.owed, outbox.owing) == (0, 0)


async def _read(peer: Any) -> None:
    async with peer.subscribe("busy") as stream:
        async for _ in stream:
            pass
