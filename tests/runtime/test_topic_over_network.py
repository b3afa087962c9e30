"""A topic with subscribers over a network:
one that requests nothing does not stop it for the others without end.
"""

import logging
from math import inf
from typing import Any

import pytest
import trio
import trio.testing

from penstock.api import Limits, PublisherFailed, SlowSubscriber
from penstock.runtime import Service, connect, serve
from penstock.runtime.connection._writer import Writer
from penstock.spi import Serializer, StreamEnded, build_registry, hookimpl
from penstock.streams import SlowPolicy, Topic, _topic

DIALECTS = ["rsio", "reactivesocket"]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("bound", [4.0, None])
async def test_a_subscriber_that_requests_nothing_holds_up_a_topic_for_a_time(
    dialect: str, bound: float | None, autojump_clock: trio.testing.MockClock
) -> None:
    """By default for 10 s. Then its stream fails with a reason, the server reports it,
    and the others get every element.
    """
    limits = Limits() if bound is None else Limits(max_hold_up=bound)
    topic: Topic[bytes] = Topic()
    service, told = Service(), list[Exception]()
    service.publish("lines", topic.map(bytes.upper))
    async with serve(
        service, f"{dialect}+memory://topic", limits=limits, on_violation=told.append
    ) as server:
        async with connect(server.addresses[0]) as one, connect(server.addresses[0]) as other:
            async with (
                one.subscribe("lines", demand=1) as mute,
                other.subscribe("lines") as quick,
                trio.open_nursery() as nursery,
            ):
                got: list[bytes] = []

                async def read() -> None:
                    async for element in quick:
                        got.append(element)  # noqa: PERF401  # what has come so far is looked at while this goes on

                nursery.start_soon(read)
                await topic.wait_subscribers(at_least=2)
                began = trio.current_time()
                for number in range(20):
                    await topic.publish(b"line %d" % number)
                topic.complete()
                assert trio.current_time() - began == pytest.approx(bound or 10, abs=0.5)
                assert await anext(mute) == b"LINE 0"
                with pytest.raises(PublisherFailed, match=r"too slow .*Limits\.max_hold_up"):
                    [await anext(mute) for _ in range(20)]
    assert [type(error) for error in told] == [SlowSubscriber]
    assert got == [b"LINE %d" % number for number in range(20)]
    assert topic.statistics().failed == 1


async def test_a_topic_may_wait_for_a_remote_subscriber_without_a_bound(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """A slow reader then sets the pace, as inside a process."""
    topic: Topic[bytes] = Topic(max_hold_up=inf)
    service = Service()
    service.publish("lines", topic)
    async with (
        serve(service, "rsio+memory://topic") as server,
        connect(server.addresses[0]) as peer,
    ):
        async with peer.subscribe("lines", demand=1) as slow, trio.open_nursery() as nursery:
            await topic.wait_subscribers()

            async def publish() -> None:
                for number in range(3):
                    await topic.publish(b"%d" % number)
                topic.complete()

            nursery.start_soon(publish)
            got = []
            async for element in slow:
                got.append(element)
                await trio.sleep(100)
    assert got == [b"0", b"1", b"2"]


@pytest.mark.parametrize("given", [{}, {"max_hold_up": 10}, {"slow": SlowPolicy.FAIL}])
async def test_a_topic_that_a_stranger_holds_up_says_so_once(
    given: dict[str, Any], autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """After a second, and before the stranger fails. A program that chose a bound, or another
    policy, knows.
    """
    topic, service = Topic[bytes](**given), Service()
    service.publish("lines", topic)
    with caplog.at_level(logging.ERROR, "penstock"):
        async with (
            serve(service, "rsio+memory://topic", on_violation=lambda _: None) as server,
            connect(server.addresses[0]) as peer,
            peer.subscribe("lines", demand=1),
            peer.subscribe("lines", demand=1),
        ):
            await topic.wait_subscribers(at_least=2)
            for number in range(30):
                await topic.publish(b"%d" % number)
    said = [record.message for record in caplog.records if "publish() waits" in record.message]
    assert len(said) == (not given)
    for text in said:
        assert "slow=SlowPolicy.FAIL or SlowPolicy.DROP_OLDEST" in text


class Counted(Serializer):
    """A serializer of numbers that counts its calls."""

    name = "counted"

    def __init__(self) -> None:
        self.calls = 0

    def dumps(self, element: object, /) -> bytes:
        self.calls += 1
        return str(element).encode()

    def loads(self, data: bytes, /) -> object:
        return int(data)


@pytest.fixture
def sends(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of all writes."""
    counted: list[int] = []
    write = Writer._send_now

    def send(self: Writer, data: bytearray) -> bool:
        counted.append(len(data))
        return write(self, data)

    monkeypatch.setattr(Writer, "_send_now", send)
    return counted


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("how", ["publish", "publish_many"])
async def test_elements_are_encoded_once_and_go_out_with_one_write_a_turn(
    dialect: str,
    how: str,
    sends: list[int],
    monkeypatch: pytest.MonkeyPatch,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Twenty subscribers, each on a connection of its own."""
    monkeypatch.setattr(_topic, "monotonic", lambda: 1.0)  # no turn ends for the time that it took
    counted, topic, service = Counted(), Topic[int](), Service()
    service.publish("numbers", topic, serializer=counted)
    got: list[list[int]] = []
    async with serve(service, f"{dialect}+memory://topic") as server:

        async def read() -> None:
            async with (
                connect(server.addresses[0]) as peer,
                peer.subscribe("numbers", serializer=counted) as stream,
            ):
                got.append([number async for number in stream])

        async with trio.open_nursery() as nursery:
            for _ in range(20):
                nursery.start_soon(read)
            await topic.wait_subscribers(at_least=20)
            # A client requests more and more as its reader takes them.
            await topic.publish_many(range(600))
            await trio.testing.wait_all_tasks_blocked()
            counted.calls = 0
            sends.clear()
            if how == "publish":
                for number in range(600, 700):
                    await topic.publish(number)
            else:
                await topic.publish_many(range(600, 700))
            assert counted.calls == 100
            await trio.testing.wait_all_tasks_blocked()
            assert len([size for size in sends if size > 500]) == 20
            topic.complete()
    assert got == [[*range(700)]] * 20


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("options", [{}, {"element_size": 4}, {"serializer": "json"}])
async def test_elements_of_all_lengths_arrive_in_order(
    dialect: str, options: dict[str, Any], autojump_clock: trio.testing.MockClock
) -> None:
    """Some are larger than a message, and demand comes late."""
    topic, service = Topic[Any](), Service()
    service.publish("elements", topic, **options)
    lengths = [4] * 300 if "element_size" in options else [1, 70_000, 0, 500, 3, 3, 3, 200_000, 9]
    wanted: list[Any] = [bytes([n % 256]) * length for n, length in enumerate(lengths)]
    if "serializer" in options:
        wanted = [element.decode("latin-1") for element in wanted]
    got: list[list[Any]] = [[] for _ in range(4)]
    async with serve(service, f"{dialect}+memory://topic") as server:

        async def read(index: int) -> None:
            async with (
                connect(server.addresses[0]) as peer,
                peer.subscribe("elements", demand=1 + 2 * index, **_for_reader(options)) as stream,
            ):
                async for element in stream:
                    await trio.sleep(index / 10)
                    got[index].append(element)

        async with trio.open_nursery() as nursery:
            for index in range(4):
                nursery.start_soon(read, index)
            await topic.wait_subscribers(at_least=4)
            for element in wanted[:100]:
                await topic.publish(element)
            await topic.publish_many(wanted[100:])
            topic.complete()
    assert got == [wanted] * 4


def _for_reader(options: dict[str, Any]) -> dict[str, Any]:
    return {} if "serializer" not in options else {"serializer": options["serializer"]}


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_elements_before_a_failure_of_the_topic_arrive(
    dialect: str, autojump_clock: trio.testing.MockClock
) -> None:
    """They are in the batch of the stream when the topic fails."""
    topic, service = Topic[bytes](), Service()
    service.publish("lines", topic)
    async with (
        serve(service, f"{dialect}+memory://topic", on_violation=lambda _: None) as server,
        connect(server.addresses[0]) as peer,
        peer.subscribe("lines") as stream,
    ):
        await topic.wait_subscribers()
        await topic.publish_many([b"%d" % number for number in range(8)])
        topic.fail(OSError("gone"))
        got = []
        with pytest.raises(PublisherFailed):
            async for element in stream:
                got.append(element)  # noqa: PERF401  # what came before the failure is looked at
    assert got == [b"%d" % number for number in range(8)]


async def test_an_observer_sees_every_element(autojump_clock: trio.testing.MockClock) -> None:
    """Its relay counts the elements that are appended to the batch."""
    ended: list[StreamEnded] = []

    class Observer:
        @hookimpl
        def penstock_stream_ended(self, event: StreamEnded) -> None:
            ended.append(event)

    topic, service = Topic[bytes](), Service()
    service.publish("lines", topic)
    registry = build_registry([Observer()])
    async with (
        serve(service, "memory://topic", registry=registry) as server,
        connect(server.addresses[0]) as peer,
        peer.subscribe("lines") as stream,
    ):
        await topic.wait_subscribers()
        for _ in range(2):
            await topic.publish_many([b"abc"] * 4)
            await trio.testing.wait_all_tasks_blocked()
        topic.complete()
        assert len([element async for element in stream]) == 8
    assert [event.elements for event in ended] == [8]


async def test_a_topic_keeps_no_group_of_subscribers_that_have_left() -> None:
    """Each connection has an encoding of its own: a table of all that ever came would grow."""
    topic: Topic[int] = Topic()
    service = Service()
    service.publish("numbers", topic, serializer="json")
    async with serve(service, "memory://left") as _, connect("memory://left") as peer:
        async with peer.subscribe("numbers", type=int) as stream:
            await topic.wait_subscribers()
            for number in range(3):
                await topic.publish(number)
            assert [await anext(stream) for _ in range(3)] == [0, 1, 2]
            assert topic._groups
        await topic.wait_alone()
        assert topic._groups == {}
