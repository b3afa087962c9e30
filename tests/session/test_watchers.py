"""The timers of an open connection: each finding, and that a look does not act twice."""

from penstock.api import ConnectionLost, ProtocolError, Role
from penstock.protocols import rsio
from penstock.session._watchers import Watchers
from tests.session._pair import RawPeer, ScriptedPublisher, limits_with, subscribe_to


def watchers(raw: RawPeer) -> Watchers:
    """Return the watchers of a session."""
    return raw.session._watchers


def test_an_idle_connection_is_found_after_idle_connection() -> None:
    """Before that the look returns when to look again."""
    raw = RawPeer(limits=limits_with(idle_connection=10)).handshake()
    assert watchers(raw).look(0.0).due == 10.0
    assert watchers(raw).look(10.0).is_idle


def test_an_unfinished_message_is_an_error_after_partial_age() -> None:
    """The finding has the reason. The timers of streams are not looked at any more."""
    raw = RawPeer(limits=limits_with(partial_age=5)).handshake()
    raw.delegate.publishers["s"] = ScriptedPublisher()
    raw.send(rsio.encode(rsio.Subscribe(publisher="s", subscriber=0))[:-1])
    found = watchers(raw).look(5.0)
    assert isinstance(found.error, ProtocolError)
    assert found.error.reason == "limit:partial"
    assert found.due is None


def test_an_unfinished_element_of_a_silent_peer_is_a_lost_connection() -> None:
    """The stream ends with ConnectionLost, and the connection goes on."""
    raw = RawPeer(Role.CLIENT, limits=limits_with(partial_age=4)).handshake()
    subscriber = subscribe_to(raw, 2)
    raw.send(rsio.OnNextPart(subscriber=0, element=0, data=b"x" * 64))
    found = watchers(raw).look(100.0)
    assert [type(end) for end in subscriber.ends] == [ConnectionLost]
    assert (found.error, found.is_idle) == (None, False)


def test_idle_streams_are_ended_or_reported() -> None:
    """With an age they end. Without one there is a single warning."""
    raw = RawPeer(limits=limits_with(idle_subscription_age=8)).handshake()
    raw.delegate.publishers["s"] = ScriptedPublisher(idle_until_demand=True)
    raw.send(rsio.Subscribe(publisher="s", subscriber=0))
    for now in (0.0, 2.0, 12.0):
        watchers(raw).look(now)
    assert raw.session.streams.serving == {}

    mild = RawPeer(limits=limits_with(idle_subscription_age=None)).handshake()
    mild.delegate.publishers["s"] = ScriptedPublisher(idle_until_demand=True)
    mild.send(rsio.Subscribe(publisher="s", subscriber=0))
    warnings = [watchers(mild).look(now).warning for now in (0.0, 900.0, 5000.0, 9000.0)]
    assert [warning is not None for warning in warnings] == [False, False, True, False]
