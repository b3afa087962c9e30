"""A topic with subscribers over a network:
one that requests nothing does not stop it for the others without end.
"""

from math import inf

import pytest
import trio
import trio.testing

from penstock.api import Limits, PublisherFailed, SlowSubscriber
from penstock.runtime import Service, connect, serve
from penstock.streams import Topic

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
