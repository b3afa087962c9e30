"""Where a stream of a client begins, stops and goes on, without a connection."""

from types import SimpleNamespace
from typing import Any

import pytest

from penstock.api import (
    UNBOUNDED,
    ConnectionLost,
    PositionedName,
    Positions,
    ProtocolError,
    PublisherFailed,
    Rejected,
    StreamState,
)
from penstock.client import ClientStream, StreamOpening
from penstock.testing import ManualPublisher

LOST = ConnectionLost("lost")
REFUSED = Rejected("refused", processed=False, temporary=True)


class Endpoint:
    """Stands for an open connection: it notes the name, and subscribes to a new publisher."""

    def __init__(self, *, drains: bool = False) -> None:
        self.publisher = ManualPublisher()
        self.name = ""
        self.session: Any = SimpleNamespace()
        self.session.streams = SimpleNamespace(drain=SimpleNamespace(is_peer_draining=drains))

    def subscribe(self, name: str, stream: Any, window: Any) -> None:
        self.name = name
        self.publisher.subscribe(stream)

    @property
    def requests(self) -> list[int]:
        return self.publisher.subscription.requests


def opened(
    name: str, *, demand: int = 6, goes_on: bool = True
) -> tuple[ClientStream[Any], Endpoint]:
    stream = new_stream(name, demand=demand, goes_on=goes_on)
    return stream, subscribed(stream)


def new_stream(name: str, *, demand: int = 6, goes_on: bool = True) -> ClientStream[Any]:
    return ClientStream(StreamOpening(name, demand, None, 1 << 30, 1 << 20, goes_on=goes_on))


def subscribed(stream: ClientStream[Any], *, drains: bool = False) -> Endpoint:
    endpoint: Any = Endpoint(drains=drains)
    stream._subscribe_to(endpoint)
    return endpoint  # type: ignore[no-any-return]  # it stands for one


def cut(stream: ClientStream[Any], endpoint: Endpoint, *, taken: int) -> None:
    """Lose the connection after four elements, of which some were taken."""
    for number in range(taken):
        endpoint.publisher.emit(b"%d" % number)
        stream._take_batch()
    endpoint.publisher.emit(*[b"x"] * (4 - taken))
    endpoint.publisher.fail(LOST)


def test_a_position_is_known_when_it_was_given_or_told() -> None:
    """A word has no number before the publisher has answered."""
    assert opened("a")[0].position_if_known is None
    assert opened(PositionedName("a", 5))[0].position == 5
    stream, endpoint = opened(PositionedName("a", "latest"))
    assert stream.position_if_known is None
    stream.on_fact(Positions(40, 2, 40))
    endpoint.publisher.emit(1, 2, 3)
    assert stream.position == 40
    stream._take_batch()
    assert stream.position == 43


@pytest.mark.parametrize(
    ("name", "first", "second"),
    [
        ("a", "a", "a?start=12"),
        (
            "a?region=eu&start=5&stop=latest",
            "a?region=eu&start=5&stop=latest",
            "a?region=eu&start=12&stop=40",
        ),
        (PositionedName("a", "earliest", 30), "a?start=earliest&stop=30", "a?start=12&stop=30"),
        (PositionedName("a", 10, "latest"), "a?start=10&stop=latest", "a?start=12&stop=40"),
    ],
)
def test_a_stream_goes_on_after_its_last_element(name: str, first: str, second: str) -> None:
    """`latest` as the place to stop is the one of the first answer."""
    stream, endpoint = opened(name)
    assert endpoint.name == first
    stream.on_fact(Positions(10, 2, 40))
    endpoint.publisher.emit(1, 2)
    endpoint.publisher.fail(LOST)
    assert subscribed(stream).name == second


@pytest.mark.parametrize(
    ("name", "goes_on", "error"),
    [
        (PositionedName("a", 5), False, LOST),
        ("a", True, LOST),
        (PositionedName("a", 5), True, PublisherFailed("out of paper")),
    ],
    ids=["no policy", "no positions", "a failure of the publisher"],
)
def test_a_stream_ends_if_it_cannot_go_on(name: str, error: Exception, *, goes_on: bool) -> None:
    """The error is what ended it."""
    stream, endpoint = opened(name, goes_on=goes_on)
    endpoint.publisher.fail(error)
    assert stream.statistics().state is StreamState.FAILED
    with pytest.raises(type(error)):
        stream._has_ended()


@pytest.mark.parametrize("demand", [0, 6])
def test_the_demand_is_exact_over_a_lost_connection(demand: int) -> None:
    """The outstanding demand is requested again, and no more."""
    stream, endpoint = opened(PositionedName("a", 5), demand=demand)
    if not demand:
        stream.request(6)
    cut(stream, endpoint, taken=1)
    outstanding = stream.statistics().outstanding
    assert stream._is_readable
    assert stream._try(stream._take_batch) == [b"x"] * 3
    assert stream.position == 9
    assert stream._try(stream._take_slice) is None
    assert not stream._has_ended()
    again = subscribed(stream)
    assert again.name == "a?start=9"
    assert again.requests == [outstanding]
    assert not stream._is_readable
    assert stream._try(stream._take_batch) is None
    assert stream.statistics().outstanding == (demand or outstanding)


def test_unbounded_demand_stays_unbounded() -> None:
    """The next connection gets the same number, not one less."""
    stream, endpoint = opened(PositionedName("a", 5), demand=0)
    stream.request(UNBOUNDED)
    endpoint.publisher.emit(b"x")
    endpoint.publisher.fail(LOST)
    assert subscribed(stream).requests == [UNBOUNDED]


@pytest.mark.parametrize("target", ["a", PositionedName("a", 5), PositionedName("a", "earliest")])
def test_a_stream_that_a_draining_server_has_refused_begins_anew(target: str) -> None:
    """With the same name and its whole demand."""
    stream = new_stream(target, demand=0)
    stream.request(3)
    endpoint = subscribed(stream, drains=True)
    endpoint.publisher.fail(REFUSED)
    assert stream._is_readable
    assert not stream._has_ended()
    stream.request(2)
    again = subscribed(stream)
    assert again.name == target
    assert (sum(endpoint.requests), sum(again.requests)) == (3, 5)
    again.publisher.emit(b"x")
    assert stream._try(stream._take_batch) == [b"x"]


@pytest.mark.parametrize(("drains", "goes_on"), [(False, True), (True, False)])
def test_another_refusal_ends_a_stream(*, drains: bool, goes_on: bool) -> None:
    """The server does not drain, or the client has no policy to reconnect."""
    stream = new_stream("a", goes_on=goes_on)
    subscribed(stream, drains=drains).publisher.fail(REFUSED)
    with pytest.raises(Rejected):
        stream._has_ended()


def test_a_stream_that_is_cancelled_while_it_waits_is_cancelled_at_the_next_connection() -> None:
    """Its reader may wait for that connection in another task."""
    stream = new_stream("a")
    subscribed(stream, drains=True).publisher.fail(REFUSED)
    stream.cancel()
    again = subscribed(stream)
    assert again.publisher.subscription.cancelled
    assert again.requests == []


def test_a_publisher_that_begins_elsewhere_is_at_fault() -> None:
    """Elements would be missing, or come twice. It is cancelled, and no later signal is taken."""
    stream, endpoint = opened(PositionedName("a", 5))
    stream.on_fact(Positions(5, 0, 40))
    cut(stream, endpoint, taken=4)
    again = subscribed(stream)
    stream.on_fact("unknown")
    stream.on_fact(Positions(10, 0, 40))
    stream.on_next(b"late")
    assert again.publisher.subscription.cancelled
    assert stream.statistics().state is StreamState.FAILED
    with pytest.raises(ProtocolError, match="'a' begins at position 10, and 9 was asked for"):
        stream._has_ended()
    assert stream.position == 9


def test_a_cut_stream_can_be_cancelled() -> None:
    """Its reader gets the end, and no wait for a connection."""
    stream, endpoint = opened(PositionedName("a", 5))
    cut(stream, endpoint, taken=0)
    stream.cancel()
    assert stream._try(stream._take_batch) is None
    assert stream._has_ended()
