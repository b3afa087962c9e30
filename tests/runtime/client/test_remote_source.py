"""The publisher that a URL names is a source like any other."""

from typing import Any

import pytest
import trio

import penstock
from penstock.api import UNBOUNDED, ConnectionLost, Rejected, Subscriber, Subscription, UsageError
from penstock.core import Scope
from penstock.protocols import reactivesocket, rsio
from penstock.runtime import remote, serve, subscribe
from penstock.spi import Connection, Reconnect, TransportOptions, parse_url
from penstock.testing import ManualSubscriber
from penstock.transports import MemoryTransport
from tests.runtime._services import numbers_service


async def test_a_remote_publisher_is_a_source_like_any_other() -> None:
    """It works in a pipe and with a sink."""
    async with serve(numbers_service(), "memory://test") as server:
        source = remote(f"{server.addresses[0]}/numbers/10", serializer="json")
        assert await penstock.collect(
            penstock.pipe(source, penstock.ops.filter(lambda n: n % 2), penstock.ops.take(3))
        ) == [1, 3, 5]


async def test_after_a_reconnect_exactly_the_outstanding_demand_is_requested(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """The subscriber sees one stream; the publisher gets a new subscription, from its beginning."""
    policy = Reconnect(attempts=3, first=1.0, chance=lambda: 1.0)
    got: list[Any] = []
    async with trio.open_nursery() as nursery:
        first = serve(numbers_service(), "memory://test")
        async with first as server:
            address = server.addresses[0]
            opened = trio.Event()

            async def read() -> None:
                async with subscribe(
                    f"{address}/numbers/5", serializer="json", demand=2, reconnect=policy
                ) as stream:
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


RSIO = {
    "hello": [rsio.ServerHello(), rsio.OnSubscribe(subscriber=0)],
    "one": [rsio.OnNext(subscriber=0, element=b"one")],
    "message": [rsio.OnNext(subscriber=0, element=bytes(1000))],
    "parts": [rsio.OnNextPart(subscriber=0, element=0, data=bytes(1000))] * 2,
    "last": [rsio.OnNextLastPart(subscriber=0, element=0, data=bytes(1000))],
    "end": [rsio.OnComplete(subscriber=0)],
}
REACTIVESOCKET = {
    "hello": [],
    "one": [reactivesocket.Response(stream_id=1, data=b"one")],
    "message": [reactivesocket.Response(stream_id=1, data=bytes(1000))],
    "parts": [
        reactivesocket.Response(stream_id=1, begin=begin, end=False, data=bytes(1000))
        for begin in (True, False)
    ],
    "last": [reactivesocket.Response(stream_id=1, begin=False, data=bytes(1000))],
    "end": [reactivesocket.Response(stream_id=1, begin=False, end=False, complete=True)],
}


def said(protocol: str, *keys: str) -> bytes:
    words, encode = (
        (RSIO, rsio.encode) if protocol == "rsio" else (REACTIVESOCKET, reactivesocket.encode)
    )
    return b"".join(encode(word) for key in keys for word in words[key])  # type: ignore[arg-type, attr-defined]  # each in its own tongue


MIDDLES = [
    (("message",), 3),
    (("message",), 500),
    (("parts",), 0),
    (("parts", "last"), 500),
    (("parts", "last"), 1040),
]


@pytest.mark.parametrize("pause", [0.0, 29.0], ids=["at once", "late"])
@pytest.mark.parametrize(
    ("middle", "missing"),
    MIDDLES,
    ids=["message", "half a message", "parts", "half a part", "a header"],
)
@pytest.mark.parametrize("protocol", ["rsio", "reactivesocket"])
async def test_a_link_that_goes_dead_in_the_middle_of_an_element_is_a_lost_connection(
    autojump_clock: trio.testing.MockClock,
    protocol: str,
    middle: tuple[str, ...],
    missing: int,
    pause: float,
) -> None:
    """It is noticed within 1.25 times `partial_age`. `Reconnect` tries again; without it the
    reader gets ConnectionLost.
    """
    url, data = f"{protocol}+memory://dead", said(protocol, *middle)[: -missing or None]
    made = 0

    async def publish(connection: Connection) -> None:
        nonlocal made
        made += 1
        await connection.receive()
        await connection.send(said(protocol, "hello", "one"))
        if made % 2:
            await connection.send(data[:1100])
            await trio.sleep(pause)
            await connection.send(data[1100:])
        else:
            await connection.send(said(protocol, "end"))
        await trio.sleep_forever()

    async with trio.open_nursery() as nursery:
        listener = await MemoryTransport().listen(
            parse_url("memory://dead"), options=TransportOptions(), nursery=nursery
        )

        async def accept() -> None:
            while True:
                nursery.start_soon(publish, await listener.accept())

        nursery.start_soon(accept)
        async with subscribe(f"{url}/x", reconnect=Reconnect(first=1e-9)) as stream:
            assert [element async for element in stream] == [b"one", b"one"]
        # Neither goodbye is answered, and its connection lingers.
        assert trio.current_time() <= max(30, pause + 7.5) + 2 * 3.1
        with pytest.raises(ConnectionLost, match="left unfinished for more than 30 s"):
            async with subscribe(f"{url}/x") as stream:
                assert [element async for element in stream] == [b"one"]
        assert made == 3
        nursery.cancel_scope.cancel()


async def test_attempts_in_a_row_have_an_end(autojump_clock: trio.testing.MockClock) -> None:
    """After the last attempt the error is passed on, at the time that the policy gives."""
    policy = Reconnect(attempts=3, first=1.0, chance=lambda: 1.0)
    with pytest.raises(ConnectionLost, match="no listener at"):
        async with subscribe("memory://nobody/x", reconnect=policy) as stream:
            await anext(stream)
    assert trio.current_time() == pytest.approx(3.0)


async def test_a_refusal_is_not_tried_again() -> None:
    """A second attempt would be refused too."""
    async with serve(numbers_service(), "memory://test") as server:
        with pytest.raises(Rejected):
            async with subscribe(f"{server.addresses[0]}/nobody", reconnect=Reconnect()) as stream:
                await anext(stream)


async def test_a_callback_subscriber_gets_every_element_by_itself() -> None:
    """Batches and packed elements are taken apart for a subscriber that has no method for them."""
    service = numbers_service()
    service.publish("ints", [b"aabbcc"], element_size=2)
    async with serve(service, "memory://test") as server, trio.open_nursery() as nursery:
        for name, expected in (
            ("numbers/9", [b"%d" % n for n in range(9)]),
            ("ints", [b"aa", b"bb", b"cc"]),
        ):
            subscriber = ManualSubscriber()
            remote(f"{server.addresses[0]}/{name}", serializer="bytes").publisher(
                nursery
            ).subscribe(subscriber)
            subscriber.request(20)
            assert await subscriber.expect_elements(len(expected)) == expected
            await subscriber.expect_complete()


async def test_demand_before_the_connection_is_kept() -> None:
    """After a cancel before that, no connection is made."""
    async with serve(numbers_service(), "memory://test") as server:
        source = remote(f"{server.addresses[0]}/numbers/3", serializer="json")
        assert repr(source).startswith("<source memory://test")
        assert await penstock.collect(penstock.pipe(source, penstock.ops.take(1))) == [0]
        async with subscribe(f"{server.addresses[0]}/endless"):
            pass
        assert server.peers == ()


async def test_the_waits_between_attempts_follow_the_policy(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Full jitter, to the millisecond:
    each wait is its random share of a bound that doubles up to `most`.
    """
    chances = iter([0.5, 0.25, 1.0, 0.5])
    policy = Reconnect(attempts=5, first=1.0, most=3.0, chance=lambda: next(chances))
    with pytest.raises(ConnectionLost, match="no listener at"):
        async with subscribe("memory://nobody/x", reconnect=policy) as stream:
            await anext(stream)
    assert trio.current_time() == pytest.approx(0.5 * 1 + 0.25 * 2 + 1.0 * 3 + 0.5 * 3)
    assert next(chances, None) is None


async def test_packed_elements_of_a_url_come_as_memory() -> None:
    """A stream of a URL has `buffers()` as a stream of a peer does."""
    service = numbers_service()
    service.publish("ints", [b"aabb", b"cc"], element_size=2)
    async with serve(service, "memory://test") as server:
        async with subscribe(f"{server.addresses[0]}/ints", demand=2) as stream:
            assert b"".join([piece async for piece in stream.buffers()]) == b"aabbcc"
        assert stream.element_size == 2


async def test_unbounded_demand_is_not_counted_down() -> None:
    """It is unbounded after a reconnect too."""
    async with serve(numbers_service(), "memory://test") as server, trio.open_nursery() as nursery:
        subscriber = ManualSubscriber()
        remote(f"{server.addresses[0]}/numbers/300").publisher(nursery).subscribe(subscriber)
        subscriber.request(UNBOUNDED)
        assert len(await subscriber.expect_elements(300)) == 300
        await subscriber.expect_complete()


class Changing(Subscriber[Any]):
    """Cancels inside on_subscribe, and requests more afterwards."""

    def on_subscribe(self, subscription: Subscription, /) -> None:
        subscription.cancel()
        subscription.request(1)
        self.seen: list[object] = []

    def on_next(self, element: Any, /) -> None:
        self.seen.append(element)

    def on_error(self, error: BaseException, /) -> None:
        self.seen.append(error)

    def on_complete(self, /) -> None:
        self.seen.append(None)


async def test_a_cancel_in_on_subscribe_makes_no_connection() -> None:
    """No connection is tried, so its failure is not reported either."""
    changing = Changing()
    async with trio.open_nursery() as nursery:
        remote("memory://nobody/x").publisher(nursery).subscribe(changing)
        await trio.testing.wait_all_tasks_blocked()
    assert changing.seen == []


async def test_with_a_closed_nursery_the_subscriber_gets_an_error() -> None:
    """Rule 3.16: nothing raises out of the subscription, and no connection is made."""
    subscriber = ManualSubscriber()
    async with trio.open_nursery() as nursery:
        publisher = remote("memory://nobody/x").publisher(nursery)
    publisher.subscribe(subscriber)
    assert "has closed" in str(await subscriber.expect_error(UsageError))


async def test_a_plain_subscriber_gets_batches_element_by_element() -> None:
    """It does so also if it is attached directly; packed elements are cut."""
    service = numbers_service()
    service.publish("ints", [b"aabbcc"], element_size=2)
    async with serve(service, "memory://test") as server, trio.open_nursery() as nursery:
        for name, expected in (("numbers/3", [b"0", b"1", b"2"]), ("ints", [b"aa", b"bb", b"cc"])):
            subscriber = ManualSubscriber()
            remote(f"{server.addresses[0]}/{name}", serializer="bytes").attach(
                subscriber, Scope(nursery)
            )
            subscriber.request(20)
            assert await subscriber.expect_elements(3) == expected
            await subscriber.expect_complete()


async def test_a_cancelled_nursery_ends_the_stream_with_the_reason(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """While it connects and while it waits to try again; the peer gets a goodbye."""
    async with serve(numbers_service(), "memory://test") as server:
        for url in ("memory://test/numbers/9", "memory://nobody/x"):
            subscriber = ManualSubscriber()
            async with trio.open_nursery() as nursery:
                remote(url, reconnect=Reconnect(attempts=99)).publisher(nursery).subscribe(
                    subscriber
                )
                await trio.testing.wait_all_tasks_blocked()
                nursery.cancel_scope.cancel()
            error = await subscriber.expect_error(ConnectionLost)
            assert "was stopped: the nursery that ran its connection was cancelled" in str(error)
        await trio.sleep(5)
        assert server.peers == ()


async def test_a_server_that_is_cancelled_says_goodbye_and_is_gone(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Its readers get the reason `shutdown`; its address is free again at once."""
    told: list[str] = []

    async def read() -> None:
        try:
            async with subscribe("memory://test/endless", demand=1) as stream:
                async for _ in stream:
                    reading.set()
        except ConnectionLost as lost:
            told.append(str(lost))

    reading = trio.Event()
    async with trio.open_nursery() as nursery:
        with trio.CancelScope() as scope:
            async with serve(numbers_service(), "memory://test"):
                nursery.start_soon(read)
                await reading.wait()
                scope.cancel()
                await trio.sleep_forever()
        async with serve(numbers_service(), "memory://test"):
            pass
    assert [text.partition(" (")[0] for text in told] == [
        "the peer closed the connection: 'shutdown'"
    ]


async def test_a_free_port_is_told_for_each_address() -> None:
    """Port 0 is a different one each time, and clients reach the server at `addresses`."""
    async with serve(numbers_service(), "tcp://127.0.0.1:0", "tcp://127.0.0.1:0") as server:
        one, other = server.addresses
        assert one != other
        assert one.port
        for address in (one, other):
            async with subscribe(f"{address}/numbers/2", serializer="json") as stream:
                assert [number async for number in stream] == [0, 1]


def live_service(topic: penstock.Topic[int]) -> penstock.Service:
    """Publish `topic`, alone and through `latest`."""
    service = penstock.Service()
    service.publish("every", topic, serializer="json")
    with pytest.warns(penstock.StaleElementsWarning):
        service.publish("newest", penstock.pipe(topic, penstock.ops.latest()), serializer="json")
    return service


async def test_latest_over_a_connection_gives_the_newest_element_that_has_come(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """The operator is on the side of the reader, so nothing is buffered after it: 129 elements
    came, and the reader gets the last.
    """
    topic = penstock.Topic[int]()
    async with serve(live_service(topic), "memory://test") as server:
        source = remote(f"{server.addresses[0]}/every", serializer="json")
        async with subscribe(penstock.pipe(source, penstock.ops.latest())) as stream:
            await topic.wait_subscribers()
            for number in range(130):
                await topic.publish(number)
            await trio.sleep(1)  # until the elements have crossed the connection
            assert await anext(stream) == 129


async def test_latest_on_the_side_of_the_server_gives_the_newest_to_a_client_with_a_demand_of_1(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """The client requests an element when it has read the one before.
    Each request gets what is the newest then.
    """
    topic = penstock.Topic[int]()
    async with serve(live_service(topic), "memory://test") as server:
        async with subscribe(
            f"{server.addresses[0]}/newest", serializer="json", demand=1
        ) as stream:
            await topic.wait_subscribers()
            await topic.publish(0)
            assert await anext(stream) == 0
            for number in range(1, 130):
                await topic.publish(number)
            assert await anext(stream) == 129
