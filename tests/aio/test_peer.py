"""The peer of a client on asyncio, against a server of penstock on trio over real sockets."""

import asyncio
import threading
from collections.abc import Iterator

import pytest

from penstock import aio
from penstock.api import (
    UsageError,
)
from tests.aio._run import SECONDS, connected, run
from tests.contracts._trio_server import Served, serving


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with serving() as running:
        yield running


def test_many_requests_are_under_way_at_a_time(served: Served) -> None:
    """Each task gets its own answer."""

    async def ask(peer: aio.Peer) -> None:
        answers = await asyncio.gather(
            *(peer.request("echo", b"%d" % number) for number in range(50))
        )
        assert answers == [b"%d" % number for number in range(50)]

    connected(served, ask)


def test_another_event_loop_is_refused(served: Served) -> None:
    """A peer belongs to its loop."""

    async def main() -> None:
        async with aio.connect(served.url) as peer:
            failed: list[BaseException] = []

            def elsewhere() -> None:
                try:
                    asyncio.run(peer.request("echo"))
                except BaseException as error:  # judged below
                    failed.append(error)

            thread = threading.Thread(target=elsewhere)
            thread.start()
            thread.join(SECONDS)
            assert [type(error) for error in failed] == [UsageError]

    run(main())
