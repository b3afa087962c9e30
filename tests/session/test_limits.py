"""Limits of what a peer may say, each scaled down: what just fits is taken, and one more ends the connection with its reason."""

from typing import Any

import pytest

from penstock.api import Role
from penstock.protocols import rsio
from penstock.session import ConnectionState
from tests.session._pair import RawPeer, RecordingSubscriber, ScriptedPublisher, limits_with, subscribe_to

LENGTHS: list[tuple[str, Role, int, Any, str]] = [
    ("max_name", Role.SERVER, 5, lambda size: rsio.Subscribe(publisher="s" * size, subscriber=1), "limit:name 6 > 5"),
    ("max_reason", Role.SERVER, 5, lambda size: rsio.Goodbye(reason="s" * size), "limit:reason 6 > 5"),
    ("max_error_text", Role.CLIENT, 5, lambda size: rsio.OnError(subscriber=0, error="s" * size), "limit:text 6 > 5"),
    ("max_frame", Role.CLIENT, 100, lambda size: rsio.OnNextPart(subscriber=0, element=0, data=bytes(size)), "limit:frame 101 > 100"),
    ("max_frame", Role.CLIENT, 100, lambda size: rsio.OnNext(subscriber=0, element=bytes(size)), "limit:frame 101 > 100"),
    ("max_element", Role.CLIENT, 100, lambda size: rsio.OnNext(subscriber=0, element=bytes(size)), "limit:frame 101 > 100"),
    ("max_element", Role.CLIENT, 100, lambda size: rsio.OnSubscribe(subscriber=1, element_size=size), "limit:frame 101 > 100"),
]


@pytest.mark.parametrize(
    ("name", "role", "most", "message", "reason"),
    LENGTHS,
    ids=[f"{case[0]} {at}" for at, case in enumerate(LENGTHS)],
)
def test_what_is_too_long_is_refused_on_its_length(name: str, role: Role, most: int, message: Any, reason: str) -> None:
    """Before its bytes have come; and what is just as long as it may be is taken."""
    for size in (most, most + 1):
        raw = RawPeer(role, limits=limits_with(**{name: most})).handshake()
        if role is Role.CLIENT:
            subscribe_to(raw, 1)
            raw.session.subscribe("s", RecordingSubscriber())
            raw.receive()
        said = rsio.encode(message(size))
        raw.send(said[:-1] if size > most and size < len(said) else said)
        if size > most:
            assert raw.goodbye_reason() == reason
        else:
            assert raw.session.state is not ConnectionState.CLOSING


def test_a_hello_lists_only_so_many_extensions() -> None:
    """Two here; a list of three is refused on its count."""
    for count in (2, 3):
        raw = RawPeer(limits=limits_with(hello_extensions=2))
        raw.send(rsio.ClientHello(extensions=(200,) * count))
        if count == 2:
            assert raw.session.state is ConnectionState.OPEN
        else:
            assert raw.goodbye_reason() == "limit:extensions 3 > 2"


def test_elements_under_way_in_parts_are_bounded_over_a_stream() -> None:
    """Two at a time here; the third ends the stream."""
    raw = RawPeer(Role.CLIENT, limits=limits_with(max_partials=2)).handshake()
    subscriber = subscribe_to(raw, 5)
    for element in range(3):
        assert subscriber.ends == []
        raw.send(rsio.OnNextPart(subscriber=0, element=element, data=bytes(64)))
    assert len(subscriber.ends) == 1
    assert raw.receive() == [rsio.Cancel(subscriber=0)]


def test_an_unfinished_element_has_its_time() -> None:
    """Two seconds here, from its first part on: more parts do not help."""
    raw = RawPeer(Role.CLIENT, limits=limits_with(partial_age=2.0)).handshake()
    subscriber = subscribe_to(raw, 5)
    for now in (0.0, 1.0, 1.9):
        raw.now = now
        raw.send(rsio.OnNextPart(subscriber=0, element=0, data=bytes(64)))
        assert raw.session.tick(now) == max(2.0, now + 0.5)
    raw.now = 2.1
    raw.send(rsio.OnNextPart(subscriber=0, element=0, data=bytes(64)))
    raw.session.tick(2.1)
    assert "unfinished for more than 2 s" in str(subscriber.ends[0])


def test_what_is_a_tiny_part_can_be_said() -> None:
    """Of ten bytes here: nine cost a glitch."""
    raw = RawPeer(Role.CLIENT, limits=limits_with(tiny_part=10, glitch_burst=1, glitch_rate=1e-9)).handshake()
    subscribe_to(raw, 5)
    raw.send(*[rsio.OnNextPart(subscriber=0, element=0, data=bytes(10))] * 5)
    assert raw.session.state is ConnectionState.OPEN
    raw.send(*[rsio.OnNextPart(subscriber=0, element=0, data=bytes(9))] * 2)
    assert raw.goodbye_reason() == "limit:glitches"


def _churn(raw: RawPeer, stream: int) -> None:
    raw.send(rsio.Subscribe(publisher="s", subscriber=stream), rsio.Cancel(subscriber=stream))


RATES: list[tuple[str, Any, str]] = [
    ("control", lambda raw, _: raw.send(rsio.Cancel(subscriber=999)), "limit:control"),
    ("churn", _churn, "limit:churn"),
    ("glitch", lambda raw, _: raw.send(rsio.Cancel(subscriber=999)), "limit:glitches"),
]


@pytest.mark.parametrize(("name", "act", "reason"), RATES, ids=[case[0] for case in RATES])
def test_a_rate_may_be_kept_up_for_ever_and_not_exceeded(name: str, act: Any, reason: str) -> None:
    """Two a second go on for a minute; four a second end the connection within a few, when the five at once are used up."""
    raw = RawPeer(limits=limits_with(**{f"{name}_burst": 5, f"{name}_rate": 2.0})).handshake()
    raw.delegate.publishers["s"] = ScriptedPublisher()
    for each in range(120):
        raw.now = each / 2
        act(raw, each)
    assert raw.session.state is ConnectionState.OPEN
    raw.receive()
    for each in range(120, 140):
        raw.now += 0.25
        act(raw, each)
    assert raw.goodbye_reason() == reason


def test_a_stream_that_lived_for_a_second_is_no_churn() -> None:
    """However many of them there are."""
    raw = RawPeer(limits=limits_with(churn_burst=1, churn_rate=1e-9)).handshake()
    raw.delegate.publishers["s"] = ScriptedPublisher()
    for each in range(20):
        raw.now = each * 1.5
        raw.send(rsio.Subscribe(publisher="s", subscriber=each))
        raw.now += 1.0
        raw.send(rsio.Cancel(subscriber=each))
    assert raw.session.state is ConnectionState.OPEN


def test_a_goodbye_has_its_time() -> None:
    """Half a second here, and the connection is over, answered or not."""
    raw = RawPeer(limits=limits_with(goodbye_timeout=0.5)).handshake()
    raw.session.close("enough")
    due = raw.session.tick(0.0)
    assert due == 0.5
    raw.session.tick(due)
    assert raw.session.state.is_over
