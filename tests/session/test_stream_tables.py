"""The tables of streams, the drain, and the delegate of a session."""

import inspect
from typing import Any

import pytest

from penstock.api import ConnectionLost, Model, Request, Role
from penstock.protocols import rsio
from penstock.session import ConnectionState, SessionDelegate
from penstock.session._stream_tables import DrainState, target_bytes
from tests.session._pair import (
    Pair,
    RawPeer,
    RecordingDelegate,
    RecordingSubscriber,
    ScriptedPublisher,
    limits_with,
    open_stream,
    subscribe_to,
)

# --- the tables


def test_nothing_is_sent_if_the_subscriber_cancels_in_on_subscribe() -> None:
    """The stream is in no table either."""

    class CancelsAtOnce(RecordingSubscriber):
        def on_subscribe(self, subscription: Any, /) -> None:
            subscription.request(3)
            subscription.cancel()

    raw = RawPeer(Role.CLIENT).handshake()
    raw.session.subscribe("s", CancelsAtOnce())
    assert raw.receive() == []
    assert raw.session.streams.opened == {}


def test_demand_of_on_subscribe_goes_with_the_subscribe() -> None:
    """One message has all of it."""
    raw = RawPeer(Role.CLIENT).handshake()
    raw.session.subscribe("s", RecordingSubscriber(7))
    assert raw.receive() == [rsio.Subscribe(publisher="s", subscriber=0, demand=7)]


def test_a_request_without_an_answer_raises_after_the_end() -> None:
    """The error has the reason for which the connection ended."""
    raw = RawPeer(Role.CLIENT).handshake()
    raw.session.close("enough")
    with pytest.raises(ConnectionLost, match="enough"):
        raw.session.streams.fire("s")


def test_what_is_asked_after_the_end_raises_an_error_of_its_own_each_time() -> None:
    """One object that is raised again and again keeps the frames of all that have asked."""
    raw = RawPeer(Role.CLIENT).handshake()
    raw.session.close("enough")
    with pytest.raises(ConnectionLost) as first:
        raw.session.streams.fire("s")
    with pytest.raises(ConnectionLost) as second:
        raw.session.streams.fire("s")
    asked = RecordingSubscriber(1)
    raw.session.subscribe("s", asked)
    assert (
        len(
            {
                id(first.value),
                id(second.value),
                id(asked.ends[0]),
                id(raw.session.streams.end_error),
            }
        )
        == 4
    )
    assert raw.session.streams.end_error is not None
    assert raw.session.streams.end_error.__traceback__ is None


def test_a_stream_that_is_opened_while_all_end_fails_at_once() -> None:
    """A subscriber may subscribe again in on_error."""

    class SubscribesAgain(RecordingSubscriber):
        def on_error(self, error: BaseException, /) -> None:
            super().on_error(error)
            raw.session.subscribe("s", second)

    raw, second = RawPeer(Role.CLIENT).handshake(), RecordingSubscriber(1)
    raw.session.subscribe("s", SubscribesAgain(1))
    raw.session.end_of_input()
    assert [type(end) for end in second.ends] == [ConnectionLost]
    assert raw.session.streams.opened == {0: raw.session.streams.opened[0]}


def test_a_cancelled_stream_does_not_keep_the_connection_open() -> None:
    """Its place in the table is kept, but the connection may become idle."""
    raw = RawPeer(Role.CLIENT).handshake()
    subscriber = subscribe_to(raw, 1)
    assert raw.session.streams.has_streams()
    subscriber.cancel()
    assert not raw.session.streams.has_streams()
    raw.send(rsio.OnComplete(subscriber=0))
    assert (raw.session.streams.opened, raw.session.streams.cancelled.count) == ({}, 0)


def test_too_many_cancelled_streams_end_the_connection() -> None:
    """A peer that never ends them makes this side remember them."""
    raw = RawPeer(Role.CLIENT, limits=limits_with(retired_ids=2)).handshake()
    for _ in range(3):
        subscriber = RecordingSubscriber(1)
        raw.session.subscribe("s", subscriber)
        subscriber.cancel()
    assert raw.goodbye_reason() == "limit:ids"


def test_a_change_of_elements_applies_to_streams_that_are_open() -> None:
    """Elements behind the change pass through it, and elements before it do not."""
    pair = Pair()
    source, subscriber = open_stream(pair, 10)
    source.emit(b"a", b"b")
    pair.server.session.streams.change_outgoing(bytes.upper)
    source.emit(b"c", b"d")
    pair.settle()
    assert subscriber.elements == [b"a", b"b", b"C", b"D"]


def test_a_server_without_room_drops_requests_that_have_no_answer() -> None:
    """They cannot be refused, so each costs a control token."""
    raw = RawPeer(limits=limits_with(max_subscriptions=1, controls=1)).handshake()
    raw.delegate.publishers["s"] = ScriptedPublisher()
    raw.send(rsio.Subscribe(publisher="s", subscriber=0))
    raw.session.streams.receive_fire_and_forget("dropped")
    assert raw.delegate.fired_targets == []
    raw.session.streams.receive_fire_and_forget("dropped")
    assert raw.session.state is ConnectionState.CLOSING


def test_a_target_has_the_price_of_its_bytes() -> None:
    """The data of a request is held twice: as it came, and by the handler. A request whose data
    is not whole has no target.
    """
    assert [
        target_bytes(target) for target in ("name", Request(Model.RESPONSE, b"0123456789"), None)
    ] == [4, 20, 0]


# --- the drain


def state() -> tuple[DrainState, list[float]]:
    told: list[float] = []
    drain = RawPeer().handshake().session.streams.drain
    drain.add(told.append)
    return drain, told


def test_the_earlier_end_holds() -> None:
    """A later one is not announced either."""
    drain, told = state()
    drain.begin(10.0, 30.0)
    drain.begin(12.0, 50.0)
    drain.begin(14.0, 15.0)
    assert (drain.until, told) == (15.0, [20.0, 18.0, 1.0])


def test_an_extension_that_comes_later_tells_the_peer_at_once() -> None:
    """With the time that is left, and never with less than none."""
    drain, _ = state()
    drain.begin(10.0, 9.0)
    late: list[float] = []
    drain.add(late.append)
    assert late == [0.0]


def test_a_connection_that_closes_does_not_drain() -> None:
    """Its goodbye has said more."""
    raw = RawPeer(Role.SERVER).handshake()
    raw.session.close("shutdown")
    raw.session.streams.drain.begin(1.0, 2.0)
    assert raw.session.streams.drain.until is None


def test_a_peer_that_drains_is_noted_with_and_without_a_listener() -> None:
    """The listener is called once."""
    drain, _ = state()
    drain.note_peer()
    assert drain.is_peer_draining
    drain, told = state()
    calls: list[None] = []
    drain.on_peer_draining = lambda: calls.append(None)
    drain.note_peer()
    drain.note_peer()
    assert (calls, told) == ([None], [])


def test_a_session_that_was_released_tells_nobody_of_a_drain() -> None:
    """Its listener and the extensions that announce a drain are forgotten."""
    raw = RawPeer().handshake()
    drain, calls = raw.session.streams.drain, list[object]()
    drain.on_peer_draining = lambda: calls.append(None)
    drain.add(calls.append)
    raw.session.release()
    drain.note_peer()
    drain.begin(1.0, 2.0)
    assert (calls, drain.on_peer_draining, drain.announcers) == ([], None, ())


# --- the delegate


def test_the_recording_delegate_has_every_call() -> None:
    """Each call of SessionDelegate, with the same parameters."""
    calls = [
        name
        for name, value in vars(SessionDelegate).items()
        if inspect.isfunction(value) and not name.startswith("_")
    ]
    assert calls
    for name in calls:
        expected = list(inspect.signature(getattr(SessionDelegate, name)).parameters)
        assert list(inspect.signature(getattr(RecordingDelegate, name)).parameters) == expected, (
            name
        )
