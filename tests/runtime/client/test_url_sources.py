"""URLs whose scheme a plugin reads without a connection."""

import pytest
import trio
import trio.testing

import penstock
from penstock.api import (
    UNBOUNDED,
    ConnectionLost,
    Credentials,
    PluginError,
    PublisherFailed,
    Subscription,
    UsageError,
)
from penstock.core import Scope
from penstock.runtime import connect, remote, subscribe
from penstock.spi import ElementSink, Reconnect, SourceOptions, UrlSource, build_registry, hookimpl
from tests.runtime._plain_subscriber import PlainSubscriber


class CountSource(UrlSource):
    """``count://to/5`` has the numbers 0 to 4; other hosts misbehave."""

    schemes = ("count",)
    why_no_connection = "it has streams only; use subscribe()"

    def __init__(self) -> None:
        self.options: list[SourceOptions] = []
        self.demands: list[int] = []
        self.ended = 0

    def check(self, url: str, options: SourceOptions) -> None:
        if "/" not in url.removeprefix("count://"):
            raise UsageError(f"{url!r} lacks a number")

    async def read(self, url: str, sink: ElementSink, options: SourceOptions) -> None:
        self.options.append(options)
        kind, _, most = url.removeprefix("count://").partition("/")
        try:
            sent = 0
            while sent < int(most):
                demand = await sink.wait_demand()
                self.demands.append(demand)
                if kind == "broken":
                    raise ValueError("a fault")
                if kind == "lost":
                    raise ConnectionLost("the line was cut")
                if kind == "greedy":
                    demand += 1
                part = range(sent, min(sent + demand, int(most)))
                sink.put([b"%d" % number for number in part])
                sent += len(part)
            if kind == "failing":
                raise PublisherFailed("out of stock")
        finally:
            self.ended += 1


class Plugin:
    def __init__(self) -> None:
        self.source = CountSource()

    @hookimpl
    def penstock_sources(self) -> list[UrlSource]:
        return [self.source]


PLUGIN = Plugin()
REGISTRY = build_registry([PLUGIN])


async def test_a_scheme_of_a_plugin_is_a_stream(autojump_clock: trio.testing.MockClock) -> None:
    """With a serializer, with little demand, and in a pipe;
    the end of the elements completes it.
    """
    plugin = Plugin()
    registry = build_registry([plugin])
    async with subscribe("count://to/7", registry=registry, demand=2, serializer="json") as stream:
        assert [number async for number in stream] == list(range(7))
    assert max(plugin.source.demands) <= 2
    source = remote("count://to/1000", registry=registry, type=int).filter(
        lambda number: number % 2 == 0
    )
    async with penstock.subscribe(source) as numbers:
        assert [number async for number in numbers] == list(range(0, 1000, 2))
    assert plugin.source.ended == 2


async def test_demand_without_end_is_told_as_such(autojump_clock: trio.testing.MockClock) -> None:
    """It does not shrink."""
    plugin = Plugin()
    async with subscribe("count://to/3", registry=build_registry([plugin]), demand=0) as stream:
        stream.request(UNBOUNDED)
        assert [element async for element in stream] == [b"0", b"1", b"2"]
    assert plugin.source.demands == [UNBOUNDED]


@pytest.mark.parametrize(
    ("url", "error", "text"),
    [
        ("count://failing/2", PublisherFailed, "out of stock"),
        ("count://lost/2", ConnectionLost, "the line was cut"),
        ("count://broken/2", PluginError, "a fault"),
        ("count://greedy/1000", PluginError, "requested"),
    ],
)
async def test_a_failure_ends_the_stream(
    url: str, error: type[Exception], text: str, autojump_clock: trio.testing.MockClock
) -> None:
    """An exception of another type than PenstockError is the fault of the plugin, and so are
    elements that were not requested.
    """
    with pytest.raises(error, match=text):
        async with subscribe(url, registry=REGISTRY, demand=4) as stream:
            async for _ in stream:
                pass


async def test_leaving_the_stream_cancels_the_reader(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """When the block is left, nothing of it runs."""
    plugin = Plugin()
    async with subscribe(
        "count://to/1000000", registry=build_registry([plugin]), demand=2
    ) as stream:
        async for _ in stream:
            break
    assert plugin.source.ended == 1


async def test_options_reach_the_scheme(autojump_clock: trio.testing.MockClock) -> None:
    """The scheme gets the same credentials object that the program has given."""
    plugin = Plugin()
    credentials = Credentials.bearer("x")
    async with subscribe(
        "count://to/1", registry=build_registry([plugin]), credentials=credentials
    ) as stream:
        assert [element async for element in stream] == [b"0"]
    assert plugin.source.options[0].credentials is credentials


def test_such_a_url_cannot_be_connected_to() -> None:
    """The error has the reason of the plugin."""
    with pytest.raises(UsageError, match="has streams only; use subscribe"):
        connect("count://to/1".rpartition("/")[0], registry=REGISTRY)


def test_a_wrong_url_and_options_of_a_connection_are_refused_at_the_call() -> None:
    """The scheme checks its URL; setup, a protocol and the like belong to connections."""
    with pytest.raises(UsageError, match="lacks a number"):
        remote("count://to", registry=REGISTRY)
    with pytest.raises(UsageError, match="protocol 'rsio'"):
        remote("rsio+count://to/1", registry=REGISTRY)
    with pytest.raises(UsageError, match="setup="):
        remote("count://to/1", registry=REGISTRY, setup=b"x")
    with pytest.raises(UsageError, match="reconnect="):
        remote("count://to/1", registry=REGISTRY, reconnect=Reconnect())
    with pytest.raises(UsageError, match="publisher="):
        remote("count://to/1", registry=REGISTRY, publisher="x")
    with pytest.raises(UsageError, match="transports="):
        remote("count://to/1", registry=REGISTRY, transports=("tcp",))


async def test_a_subscriber_of_single_elements_gets_each(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """One that cancels inside an element gets no other, and none
    that the plugin delivers after that.
    """

    class Leaving(PlainSubscriber):
        def on_next(self, element: object, /) -> None:
            super().on_next(element)
            if len(self.elements) == 2:
                self.cancel()

    async with trio.open_nursery() as nursery:
        all_of_them, leaving = PlainSubscriber(), Leaving()
        for subscriber in (all_of_them, leaving):
            remote("count://to/5", registry=REGISTRY).attach(subscriber, Scope(nursery))
            subscriber.request(10)
        await trio.testing.wait_all_tasks_blocked()
        assert all_of_them.elements == [b"0", b"1", b"2", b"3", b"4"]
        assert all_of_them.is_completed
        assert leaving.elements == [b"0", b"1"]
        assert not leaving.is_completed


async def test_a_cancel_inside_on_subscribe_reads_nothing(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """No task is started for it."""

    class Unwilling(PlainSubscriber):
        def on_subscribe(self, subscription: Subscription, /) -> None:
            super().on_subscribe(subscription)
            self.cancel()

    async with trio.open_nursery() as nursery:
        scope = Scope(nursery)
        remote("count://to/5", registry=REGISTRY).attach(Unwilling(), scope)
        assert scope.running == 0


async def test_a_scope_that_is_closed_or_cancelled_ends_the_stream_with_an_error(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Rule 1.4: the subscriber learns that nothing more comes."""
    stopped, late = PlainSubscriber(), PlainSubscriber()
    async with trio.open_nursery() as nursery:
        source = remote("count://to/5", registry=REGISTRY)
        source.attach(stopped, Scope(nursery))
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert isinstance(stopped.error, ConnectionLost)
    source.attach(late, Scope(nursery))
    assert isinstance(late.error, UsageError)
