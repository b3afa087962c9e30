"""`share`, and a processor, with subscribers over a network: one that requests nothing does not
stop the source for the others.
"""

from collections.abc import AsyncIterator, Callable
from math import inf
from typing import Any

import pytest
import trio
import trio.testing

from penstock.api import UNBOUNDED, Limits, Publisher, PublisherFailed, SlowSubscriber
from penstock.runtime import Service, connect, serve
from penstock.streams import Source, generate, ops, subscribe

DIALECTS = ["rsio", "reactivesocket"]
LAST = 400


async def _numbers() -> AsyncIterator[bytes]:
    for number in range(LAST):
        await trio.lowlevel.checkpoint()
        yield b"%d" % number


Published = Source[Any] | Publisher[Any]


def _shared(nursery: trio.Nursery, **options: Any) -> Published:
    return generate(_numbers).share(nursery, **options)


def _shared_and_bound(nursery: trio.Nursery, **options: Any) -> Published:
    return _shared(nursery, **options).publisher(nursery)


def _processor(nursery: trio.Nursery, **options: Any) -> Published:
    made = ops.processor(nursery, **options)
    generate(_numbers).publisher(nursery).subscribe(made)
    return made


FAN_OUTS = {"share": _shared, "publisher of share": _shared_and_bound, "processor": _processor}


async def _read(stream: Any, into: list[bytes]) -> None:
    async for element in stream:
        into.append(element)  # noqa: PERF401  # what has come so far is looked at while this goes on


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("bound", [4.0, None])
@pytest.mark.parametrize("fan_out", FAN_OUTS.values(), ids=FAN_OUTS)
async def test_a_subscriber_that_requests_nothing_holds_up_the_others_for_a_time(
    fan_out: Callable[..., Published],
    bound: float | None,
    dialect: str,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """By default for 10 s. Then its stream fails with a reason, the server reports it,
    and the others get every element.
    """
    limits = Limits() if bound is None else Limits(max_hold_up=bound)
    service, told, got = Service(), list[Exception](), list[bytes]()
    async with trio.open_nursery() as owner:
        service.publish("numbers", fan_out(owner))
        async with serve(
            service, f"{dialect}+memory://shared", limits=limits, on_violation=told.append
        ) as server:
            async with connect(server.addresses[0]) as one, connect(server.addresses[0]) as other:
                async with (
                    one.subscribe("numbers", demand=1) as mute,
                    other.subscribe("numbers", demand=8) as quick,
                ):
                    began = trio.current_time()
                    with trio.fail_after(60):
                        await _read(quick, got)
                    assert trio.current_time() - began == pytest.approx(bound or 10, abs=0.5)
                    with pytest.raises(PublisherFailed, match=r"too slow .*Limits\.max_hold_up"):
                        await _read(mute, [])
    assert [type(error) for error in told] == [SlowSubscriber]
    assert got[-1] == b"%d" % (LAST - 1)
    assert len(got) >= LAST - 16  # it may have joined after the first elements


@pytest.mark.parametrize("fan_out", FAN_OUTS.values(), ids=FAN_OUTS)
async def test_without_a_bound_the_slowest_remote_subscriber_sets_the_pace(
    fan_out: Callable[..., Published], autojump_clock: trio.testing.MockClock
) -> None:
    """`max_hold_up=math.inf` says so, as inside a process."""
    service, got = Service(), list[bytes]()
    async with trio.open_nursery() as owner:
        service.publish("numbers", fan_out(owner, max_hold_up=inf))
        async with (
            serve(service, "rsio+memory://shared") as server,
            connect(server.addresses[0]) as peer,
        ):
            async with (
                peer.subscribe("numbers", demand=1) as slow,
                peer.subscribe("numbers") as quick,
                trio.open_nursery() as nursery,
            ):
                nursery.start_soon(_read, quick, got)
                await trio.sleep(1000)
                held = len(got)
                assert held < LAST
                await _read(slow, [])
    assert got[-1] == b"%d" % (LAST - 1)


async def test_a_remote_subscriber_alone_may_wait_without_end(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """It holds up nothing but its own stream."""
    service, told = Service(), list[Exception]()
    async with trio.open_nursery() as owner:
        service.publish("numbers", _shared(owner))
        async with (
            serve(service, "rsio+memory://shared", on_violation=told.append) as server,
            connect(server.addresses[0]) as peer,
        ):
            async with peer.subscribe("numbers", demand=1) as slow:
                await trio.sleep(1000)
                got: list[bytes] = []
                await _read(slow, got)
    assert len(got) == LAST
    assert not told


async def test_a_subscriber_in_this_process_has_no_bound(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Its pace is the program's own choice."""
    async with trio.open_nursery() as owner:
        shared = generate(_numbers).share(owner)
        got: list[bytes] = []
        async with (
            subscribe(shared, demand=1) as mute,
            subscribe(shared, demand=UNBOUNDED) as quick,
            trio.open_nursery() as nursery,
        ):
            nursery.start_soon(_read, quick, got)
            await trio.sleep(1000)
            assert len(got) < LAST
            await _read(mute, [])
    assert len(got) == LAST
