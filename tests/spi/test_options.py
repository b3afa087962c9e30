"""The options of a transport beside the URL."""

import pytest

from penstock.api import Limits, UsageError
from penstock.spi import TransportOptions


def test_the_defaults_are_those_of_the_limits() -> None:
    """A transport without options has the same bounds."""
    options = TransportOptions()
    assert options.tcp_user_timeout == 30
    assert options.tcp_keepalive == (20, 5, 4)
    assert options.handshake_timeout == 5
    assert options.max_message == 1024 * 1024
    assert options.receive_chunk == 128 * 1024
    assert options.protocols is None


@pytest.mark.parametrize(
    "name",
    [
        "handshake_timeout",
        "close_timeout",
        "kill_timeout",
        "receive_chunk",
        "max_message",
        "preauth_bytes",
        "backlog",
    ],
)
@pytest.mark.parametrize("value", [0, -1, float("nan")])
def test_a_bound_that_is_not_positive_is_refused(name: str, value: float) -> None:
    """Zero, negative numbers and NaN; the message names the option."""
    with pytest.raises(UsageError, match=name):
        TransportOptions(**{name: value})


def test_options_at_their_default_follow_the_limits() -> None:
    """The other options stay."""
    limits = Limits(tls_timeout=1.5, receive_chunk=100, max_frame=3 << 20, preauth_bytes=512)
    within = TransportOptions(protocols=("x",)).within(limits)
    assert within == TransportOptions(
        protocols=("x",),
        handshake_timeout=1.5,
        receive_chunk=100,
        max_message=3 << 20,
        preauth_bytes=512,
    )
    assert TransportOptions().within(Limits()) == TransportOptions()


def test_options_that_were_changed_do_not_follow_the_limits() -> None:
    """The program has set them for this transport."""
    options = TransportOptions(handshake_timeout=7.0, receive_chunk=10, max_message=20)
    assert options.within(Limits(tls_timeout=1.5, receive_chunk=100, max_frame=300)) == options


def test_max_message_is_at_least_the_largest_batch() -> None:
    """The writer sends everything that waits as one message, so a peer with the same limits may
    send messages of this size.
    """
    limits = Limits(max_frame=100, outbound_high=1000, split_outbound_at=200, outbound_control=50)
    assert TransportOptions().within(limits).max_message == 1250


def test_speaking_sets_the_protocols_unless_they_are_set() -> None:
    """An empty tuple counts as set."""
    assert TransportOptions().speaking(iter(["a", "b"])).protocols == ("a", "b")
    assert TransportOptions(protocols=("x",)).speaking(["a"]).protocols == ("x",)
    assert TransportOptions(protocols=()).speaking(["a"]).protocols == ()


@pytest.mark.parametrize("seconds", [-0.001, 0.11, float("nan")])
def test_busy_poll_is_at_most_100_ms(seconds: float) -> None:
    """Polling occupies a processor."""
    with pytest.raises(UsageError, match=r"busy_poll=.*; give seconds, 0 to 0\.1"):
        TransportOptions(busy_poll=seconds)
    assert TransportOptions(busy_poll=0.1).busy_poll == 0.1
