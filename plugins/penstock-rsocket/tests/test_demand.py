"""Tests of demand that no frame can carry, and of ids, on a session without I/O."""

from typing import Any

import penstock_rsocket as rsocket
import pytest
from penstock_rsocket import RequestN, RequestStream, RsocketDialect
from penstock_rsocket._demand import LargeDemand

from penstock.api import UNBOUNDED, Limits, Role, Subscriber, Subscription
from penstock.session import Session

LARGEST = 2**31 - 1


class Delegate:
    """Drives no program: it accepts every call."""

    def __getattr__(self, name: str) -> Any:
        return lambda *_: None


class Reader(Subscriber[bytes]):
    """Requests `demand` at once, and counts."""

    def __init__(self, demand: int) -> None:
        self.demand = demand
        self.subscription: Subscription
        self.elements = 0

    def on_subscribe(self, subscription: Subscription, /) -> None:
        self.subscription = subscription
        if self.demand:
            subscription.request(self.demand)

    def on_next(self, element: bytes, /) -> None:
        self.elements += 1

    def on_error(self, error: BaseException, /) -> None:
        raise AssertionError(error)

    def on_complete(self, /) -> None:
        self.elements = -self.elements


def client() -> Session:
    """Return the session of a client that its server has accepted."""
    session = Session(
        Delegate(),
        RsocketDialect,
        role=Role.CLIENT,
        limits=Limits(),
        random=lambda: 0.5,
    )
    session.start(0.0)
    session.receive(rsocket.encode(rsocket.Keepalive()), 0.0)
    session.take()
    return session


def sent(session: Session) -> list[rsocket.Frame]:
    return [rsocket.decode(bytes(each)) for each in session.split(session.take())]


def receive(session: Session, *frames: rsocket.Frame) -> None:
    session.receive(b"".join(map(rsocket.encode, frames)), 0.0)


@pytest.mark.parametrize("demand", [UNBOUNDED, 3 * 10**9 + 5])
def test_three_milliards_of_elements_pass_one_stream(demand: int) -> None:
    """At most 2^31-1 are open at a time, each frame has a legal number, and the sum of all grants
    is what was requested, or always enough.
    """
    session, reader = client(), Reader(demand)
    session.subscribe("all", reader)
    assert sent(session) == [RequestStream(stream_id=1, demand=LARGEST, metadata=ROUTE)]
    dialect: Any = session.channel.dialect
    counted = dialect._counted.counted(1)  # the elements themselves would take an hour
    granted, arrived = LARGEST, 0
    while arrived < 3 * 10**9:
        step = min(2**20 * 37, 3 * 10**9 - arrived)
        counted.count(step)
        arrived += step
        granted += sum(frame.demand for frame in sent(session) if isinstance(frame, RequestN))
        assert 0 < granted - arrived <= LARGEST
    assert demand in (UNBOUNDED, granted)


def test_elements_of_such_a_stream_are_counted_where_they_arrive() -> None:
    """One by one, in runs, with metadata, in fragments; and the stream goes on."""
    session, reader = client(), Reader(UNBOUNDED)
    session.subscribe("all", reader)
    sent(session)
    receive(
        session,
        rsocket.Payload(stream_id=1, data=b"1"),
        rsocket.Payload(stream_id=1, metadata=b"m", data=b"2"),
        rsocket.Payload(stream_id=1, data=b"3" * 99, follows=True),
        rsocket.Payload(stream_id=1, data=b"3"),
        *(rsocket.Payload(stream_id=1, data=b"4") for _ in range(50)),
    )
    assert reader.elements == 53
    dialect: Any = session.channel.dialect
    assert dialect._counted.counted(1).demand.open == LARGEST - 53
    receive(session, rsocket.Payload(stream_id=1, complete=True, next=False))
    assert reader.elements == -53
    assert dialect._counted is None


def test_demand_that_becomes_large_is_counted_from_then_on() -> None:
    """Grants before it stay granted; another stream is not counted."""
    session, reader, other = client(), Reader(LARGEST), Reader(5)
    session.subscribe("all", reader)
    session.subscribe("other", other)
    sent(session)
    receive(session, *(rsocket.Payload(stream_id=1, data=b"x") for _ in range(10)))
    reader.subscription.request(4)
    assert sent(session) == [RequestN(stream_id=1, demand=4)]
    reader.subscription.request(LARGEST)
    assert sent(session) == [RequestN(stream_id=1, demand=6)]
    other.subscription.request(7)
    assert sent(session) == [RequestN(stream_id=3, demand=7)]
    receive(session, rsocket.Payload(stream_id=3, data=b"x"))
    assert (reader.elements, other.elements) == (10, 1)


def test_a_stream_without_demand_is_sent_with_its_first_demand() -> None:
    """A request without demand does not exist; a cancel before it sends nothing."""
    session, reader, other = client(), Reader(0), Reader(0)
    session.subscribe("all", reader)
    session.subscribe("other", other)
    assert sent(session) == []
    other.subscription.cancel()
    reader.subscription.request(3)
    reader.subscription.request(2)
    assert sent(session) == [
        RequestStream(stream_id=1, demand=3, metadata=ROUTE),
        RequestN(stream_id=1, demand=2),
    ]


def test_ids_begin_again_and_leave_out_those_in_use() -> None:
    """After 2^31-1 a client begins with 1."""
    session, reader = client(), Reader(1)
    session.subscribe("all", reader)
    session.subscribe("all", Reader(1))
    dialect: Any = session.channel.dialect
    receive(session, rsocket.Payload(stream_id=3, complete=True))
    sent(session)
    dialect._last_id = LARGEST - 2
    for _ in range(3):
        session.subscribe("all", Reader(1))
    assert [frame.stream_id for frame in sent(session)] == [LARGEST, 3, 5]  # type: ignore[union-attr]  # requests


def test_a_demand_is_never_more_than_a_frame_can_carry() -> None:
    """The rest is granted when half of it has arrived."""
    demand = LargeDemand()
    assert demand.add(2**40) == LARGEST
    assert demand.receive(2**30 - 1) == 0
    assert demand.receive(1) == 2**30
    assert demand.open == LARGEST
    assert demand.owed == 2**40 - LARGEST - 2**30


ROUTE = rsocket.encode_composite([(rsocket.ROUTING, rsocket.encode_route("all"))])
