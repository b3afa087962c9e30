"""What a transport is told beside the URL."""

import pytest

from penstock.api import Limits, UsageError
from penstock.plugins import TransportOptions


def test_the_defaults_are_those_of_the_limits() -> None:
    """A transport that is told nothing is as careful as one that is told everything."""
    options = TransportOptions()
    assert options.tcp_user_timeout == 30
    assert options.tcp_keepalive == (60, 10, 3)
    assert options.handshake_timeout == 5
    assert options.max_message == 1024 * 1024
    assert options.receive_chunk == 128 * 1024
    assert options.protocols is None


@pytest.mark.parametrize("name", ["handshake_timeout", "close_timeout", "kill_timeout", "receive_chunk", "max_message", "backlog"])
@pytest.mark.parametrize("value", [0, -1, float("nan")])
def test_a_bound_that_allows_nothing_is_refused(name: str, value: float) -> None:
    """Zero, less and no number at all are mistakes, and the message names the option."""
    with pytest.raises(UsageError, match=name):
        TransportOptions(**{name: value})


def test_what_is_left_at_its_default_follows_the_limits() -> None:
    """One record of bounds is enough to say; nothing else of the options changes."""
    limits = Limits(tls_timeout=1.5, receive_chunk=100, max_frame=3 << 20)
    within = TransportOptions(protocols=("x",)).within(limits)
    assert within == TransportOptions(protocols=("x",), handshake_timeout=1.5, receive_chunk=100, max_message=3 << 20)
    assert TransportOptions().within(Limits()) == TransportOptions()


def test_what_was_changed_is_kept() -> None:
    """Who says it of a transport means it."""
    options = TransportOptions(handshake_timeout=7.0, receive_chunk=10, max_message=20)
    assert options.within(Limits(tls_timeout=1.5, receive_chunk=100, max_frame=300)) == options


def test_a_message_that_this_side_would_send_is_taken_in() -> None:
    """What waits goes out as one message of a framed transport, however small the largest element may be."""
    limits = Limits(max_frame=100, outbound_high=1000, split_outbound_at=200, outbound_control=50)
    assert TransportOptions().within(limits).max_message == 1250


def test_what_is_spoken_is_what_the_url_speaks_unless_it_is_said() -> None:
    """Also where nothing is to be offered."""
    assert TransportOptions().speaking(iter(["a", "b"])).protocols == ("a", "b")
    assert TransportOptions(protocols=("x",)).speaking(["a"]).protocols == ("x",)
    assert TransportOptions(protocols=()).speaking(["a"]).protocols == ()


@pytest.mark.parametrize("seconds", [-0.001, 0.11, float("nan")])
def test_nobody_stays_awake_for_long(seconds: float) -> None:
    """A processor is used up meanwhile."""
    with pytest.raises(UsageError, match=r"busy_poll=.*; give seconds, 0 to 0\.1"):
        TransportOptions(busy_poll=seconds)
    assert TransportOptions(busy_poll=0.1).busy_poll == 0.1
