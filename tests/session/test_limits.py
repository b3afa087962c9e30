"""Limits of received messages, each scaled down: a value at the limit is taken, and one above it
ends the connection with its reason.
"""

from typing import Any

import pytest

from penstock.api import Role
from penstock.protocols import rsio
from penstock.session import ConnectionState
from tests.session._pair import (
    RawPeer,
    RecordingSubscriber,
    ScriptedPublisher,
    limits_with,
    subscribe_to,
)

LENGTHS: list[tuple[str, Role, int, Any, str]] = [
    (
        "max_name",
        Role.SERVER,
        5,
        lambda size: rsio.Subscribe(publisher="s" * size, subscriber=1),
        "limit:name 6 > 5",
    ),
    (
        "max_reason",
        Role.SERVER,
        5,
        lambda size: rsio.Goodbye(reason="s" * size),
        "limit:reason 6 > 5",
    ),
    (
        "max_error_text",
        Role.CLIENT,
        5,
        lambda size: rsio.OnError(subscriber=0, error="s" * size),
        "limit:text 6 > 5",
    ),
    (
        "max_frame",
        Role.CLIENT,
        100,
        lambda size: rsio.OnNextPart(subscriber=0, element=0, data=bytes(size)),
        "limit:frame 101 > 100",
    ),
    (
        "max_frame",
        Role.CLIENT,
        100,
        lambda size: rsio.OnNext(subscriber=0, element=bytes(size)),
        "limit:frame 101 > 100",
    ),
    (
        "max_element",
        Role.CLIENT,
        100,
        lambda size: rsio.OnNext(subscriber=0, element=bytes(size)),
        "limit:frame 101 > 100",
    ),
    (
        "max_element",
        Role.CLIENT,
        100,
        lambda size: rsio.OnSubscribe(subscriber=1, element_size=size),
        "limit:frame 101 > 100",
    ),
]


@pytest.mark.parametrize(
    ("name", "role", "most", "message", "reason"),
    LENGTHS,
    ids=[f"{case[0]} {at}" for at, case in enumerate(LENGTHS)],
)
def test_a_length_above_its_limit_is_refused(
    name: str, role: Role, most: int, message: Any, reason: str
) -> None:
    """The refusal comes before the bytes do. A length equal to the limit is taken."""
    for size in (most, most + 1):
        raw = RawPeer(role, limits=limits_with(**{name: most})).handshake()
        if role is Role.CLIENT:
            subscribe_to(raw, 1)
            raw.session.subscribe("s", RecordingSubscriber())
            raw.receive()
        message_bytes = rsio.encode(message(size))
        raw.send(message_bytes[:-1] if size > most and size < len(message_bytes) else message_bytes)
        if size > most:
            assert raw.goodbye_reason() == reason
        else:
            assert raw.session.state is not ConnectionState.CLOSING


def test_a_hello_lists_at_most_hello_extensions() -> None:
    """The limit is two here; a list of three is refused on its count."""
    for count in (2, 3):
        raw = RawPeer(limits=limits_with(hello_extensions=2))
        raw.send(rsio.ClientHello(extensions=(200,) * count))
        if count == 2:
            assert raw.session.state is ConnectionState.OPEN
        else:
            assert raw.goodbye_reason() == "limit:extensions 3 > 2"


def test_unfinished_elements_of_one_stream_are_bounded() -> None:
    """The limit is two here; the third ends the stream."""
    raw = RawPeer(Role.CLIENT, limits=limits_with(max_partials=2)).handshake()
    subscriber = subscribe_to(raw, 5)
    for element in range(3):
        assert subscriber.ends == []
        raw.send(rsio.OnNextPart(subscriber=0, element=element, data=bytes(64)))
    assert len(subscriber.ends) == 1
    assert raw.receive() == [rsio.Cancel(subscriber=0)]


def test_an_unfinished_element_ends_its_stream_after_partial_age() -> None:
    """The age counts from the first part, two seconds here. More parts do not extend it."""
    raw = RawPeer(Role.CLIENT, limits=limits_with(partial_age=2.0)).handshake()
    subscriber = subscribe_to(raw, 5)
    for now in (0.0, 1.0, 1.9):
        raw.now = now
        raw.send(rsio.OnNextPart(subscriber=0, element=0, data=bytes(64)))
        assert raw.session.tick(now) == 2.0
    raw.now = 2.1
    raw.send(rsio.OnNextPart(subscriber=0, element=0, data=bytes(64)))
    raw.session.tick(2.1)
    assert "unfinished for more than 2 s" in str(subscriber.ends[0])


def test_tiny_part_sets_the_length_below_which_a_part_is_odd() -> None:
    """The limit is ten bytes here, and a part of nine bytes costs a token."""
    raw = RawPeer(Role.CLIENT, limits=limits_with(tiny_part=10, glitches=1)).handshake()
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
def test_a_rate_may_be_used_up_but_not_exceeded(name: str, act: Any, reason: str) -> None:
    """Two messages a second are fine for a minute.
    Four a second end the connection once the burst of five is used up.
    """
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
    """Any number of such streams costs no token."""
    raw = RawPeer(limits=limits_with(churn=1)).handshake()
    raw.delegate.publishers["s"] = ScriptedPublisher()
    for each in range(20):
        raw.now = each * 1.5
        raw.send(rsio.Subscribe(publisher="s", subscriber=each))
        raw.now += 1.0
        raw.send(rsio.Cancel(subscriber=each))
    assert raw.session.state is ConnectionState.OPEN


def test_an_unanswered_goodbye_ends_after_goodbye_timeout() -> None:
    """Half a second here; then the connection is over."""
    raw = RawPeer(limits=limits_with(goodbye_timeout=0.5)).handshake()
    raw.session.close("enough")
    due = raw.session.tick(0.0)
    assert due == 0.5
    raw.session.tick(due)
    assert raw.session.state.is_over
