"""Random programs of a server on asyncio: the elements that arrive are the first part of those that
were made, no generator runs further than it was asked to, and nothing is left.
"""

import asyncio
import random
from collections.abc import AsyncIterator

import pytest

from penstock import aio
from penstock.api import ConnectionLost, PublisherFailed
from tests.aio._run import run
from tests.guest._served import URL, reached


class Script:
    """The steps of one generator, drawn from a seed, and those that it has made."""

    def __init__(self, draw: random.Random) -> None:
        self.count = draw.choice((0, 1, 3, 40, 300))
        self.sizes = [draw.choice((0, 1, 64, 3_000, 20_000)) for _ in range(7)]
        self.waits = [draw.choice((None, None, 0, 0.0005)) for _ in range(5)]
        self.fails_at = draw.choice((None, None, 0, 1, 30))
        self.cleanup = draw.choice((None, 0, 0.0005))
        self.made = 0
        self.has_begun = self.has_ended = False

    def element(self, number: int) -> bytes:
        size = self.sizes[number % len(self.sizes)]
        return b"%d:" % number + bytes(size)

    async def run(self) -> AsyncIterator[bytes]:
        self.has_begun = True
        try:
            for number in range(self.count):
                wait = self.waits[number % len(self.waits)]
                if wait is not None:
                    await asyncio.sleep(wait)
                if number == self.fails_at:
                    raise ValueError("as the script says")
                self.made += 1
                yield self.element(number)
        finally:
            try:
                if self.cleanup is not None:
                    await asyncio.sleep(self.cleanup)
            finally:
                self.has_ended = True  # also if the reader leaves while the cleanup waits


async def fail_soon() -> None:
    """Take the connection and all of its readers along."""
    await asyncio.sleep(0.003)
    raise ValueError("cut")


async def read(peer: aio.Peer, name: str, script: Script, draw: random.Random) -> None:
    """Read as far as the reader likes, and compare."""
    demand = draw.choice((1, 2, 7, 256))
    most = draw.choice((0, 1, 5, 1_000))
    got: list[bytes] = []
    end = "left"
    try:
        async with asyncio.timeout(draw.choice((None, None, 0.002))):
            async with peer.subscribe(name, demand=demand) as stream:
                while len(got) < most:
                    try:
                        element = await anext(stream)
                    except StopAsyncIteration:
                        end = "complete"
                        break
                    got.append(element)
                    assert script.made <= len(got) + demand
                    if draw.random() < 0.1:
                        await asyncio.sleep(0)
    except PublisherFailed:
        end = "failed"
    except (TimeoutError, ConnectionLost):
        end = "cut"
    assert got == [script.element(number) for number in range(len(got))]
    if end == "complete":
        assert len(got) == script.count
    if end == "failed":
        assert len(got) == script.fails_at


@pytest.mark.parametrize("seed", range(12))
def test_random_programs_end_in_good_order(seed: int) -> None:
    """Many streams over some connections, of which some are cut, and one server."""
    draw = random.Random(seed)
    scripts = {f"s{number}": Script(draw) for number in range(24)}
    service = aio.Service()
    for name, script in scripts.items():
        service.publisher(name)(script.run)

    async def client(url: object, names: list[str], cut: bool) -> None:
        try:
            async with aio.connect(str(url)) as peer, asyncio.TaskGroup() as group:
                for name in names:
                    group.create_task(read(peer, name, scripts[name], draw))
                if cut:
                    group.create_task(fail_soon())
        except* ValueError:
            assert cut

    async def main() -> None:
        async with aio.serve(service, URL, on_violation=lambda _: None) as server:
            names = list(scripts)
            async with asyncio.TaskGroup() as group:
                for number in range(4):
                    mine = names[number::4]
                    group.create_task(client(server.addresses[0], mine, cut=number == 3))
            # The server ends what its clients have left, while it goes on.
            await reached(
                lambda: all(script.has_ended for script in scripts.values() if script.has_begun)
            )
            await reached(lambda: not server.statistics().buffered_bytes)

    run(main())
