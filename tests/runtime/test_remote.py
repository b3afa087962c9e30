"""A publisher behind a URL is a source like any other."""

from typing import Any

import pytest
import trio

import penstock
from penstock.api import ConnectionLost, Rejected
from penstock.runtime import Reconnect, remote, serve, subscribe
from penstock.testing import ManualSubscriber
from tests.runtime._services import numbers_service


async def test_a_remote_publisher_is_a_source_like_any_other() -> None:
    """In a pipe, and in a sink."""
    async with serve(numbers_service(), "memory://test") as server:
        source = remote(f"{server.addresses[0]}/numbers/10", serializer="json")
        assert await penstock.collect(penstock.pipe(source, penstock.ops.filter(lambda n: n % 2), penstock.ops.take(3))) == [1, 3, 5]


async def test_a_lost_connection_is_made_again_and_exactly_what_is_outstanding_asked_for(autojump_clock: trio.testing.MockClock) -> None:
    """The subscriber sees one stream; the publisher is subscribed to anew, from its beginning."""
    policy = Reconnect(attempts=3, first=1.0, chance=lambda: 1.0)
    got: list[Any] = []
    async with trio.open_nursery() as nursery:
        first = serve(numbers_service(), "memory://test")
        async with first as server:
            address = server.addresses[0]
            opened = trio.Event()

            async def read() -> None:
                async with subscribe(f"{address}/numbers/5", serializer="json", demand=2, reconnect=policy) as stream:
                    async for number in stream:
                        got.append(number)
                        opened.set()
                        await trio.sleep(1)

            nursery.start_soon(read)
            await opened.wait()
        async with serve(numbers_service(), "memory://test"):
            await trio.sleep(60)
    assert got[-5:] == [0, 1, 2, 3, 4]
    assert got[:-5] == list(range(len(got) - 5))
    assert len(got) > 5


async def test_attempts_in_a_row_have_an_end(autojump_clock: trio.testing.MockClock) -> None:
    """After the last one the error is passed on, at the time that the policy says."""
    policy = Reconnect(attempts=3, first=1.0, chance=lambda: 1.0)
    with pytest.raises(ConnectionLost, match="nobody listens"):
        async with subscribe("memory://nobody/x", reconnect=policy) as stream:
            await anext(stream)
    assert trio.current_time() == pytest.approx(3.0)


async def test_a_refusal_is_no_lost_connection() -> None:
    """It would be refused again."""
    async with serve(numbers_service(), "memory://test") as server:
        with pytest.raises(Rejected):
            async with subscribe(f"{server.addresses[0]}/nobody", reconnect=Reconnect()) as stream:
                await anext(stream)


async def test_a_callback_subscriber_gets_every_element_by_itself() -> None:
    """Runs and packed elements are taken apart for who knows nothing of them."""
    service = numbers_service()
    service.publish("ints", [b"aabbcc"], element_size=2)
    async with serve(service, "memory://test") as server, trio.open_nursery() as nursery:
        for name, expected in (("numbers/9", [b"%d" % n for n in range(9)]), ("ints", [b"aa", b"bb", b"cc"])):
            subscriber = ManualSubscriber()
            remote(f"{server.addresses[0]}/{name}").publisher(nursery).subscribe(subscriber)
            subscriber.request(20)
            assert await subscriber.expect_elements(len(expected)) == expected
            await subscriber.expect_complete()


async def test_demand_before_the_peer_is_there_is_kept() -> None:
    """And a cancel before that connects to nobody."""
    async with serve(numbers_service(), "memory://test") as server:
        source = remote(f"{server.addresses[0]}/numbers/3", serializer="json")
        assert repr(source).startswith("<source memory://test")
        assert await penstock.collect(penstock.pipe(source, penstock.ops.take(1))) == [0]
        async with subscribe(f"{server.addresses[0]}/endless"):
            pass
        assert server.peers == ()
