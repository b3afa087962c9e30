"""What a transport is told beside the URL."""

import pytest

from penstock.api import UsageError
from penstock.plugins import TransportOptions


def test_the_defaults_are_those_of_the_limits() -> None:
    """A transport that is told nothing is as careful as one that is told everything."""
    options = TransportOptions()
    assert options.tcp_user_timeout == 30
    assert options.tcp_keepalive == (60, 10, 3)
    assert options.handshake_timeout == 5
    assert options.max_message == 1024 * 1024
    assert options.receive_chunk == 64 * 1024
    assert options.protocols == ("rsio/0",)


@pytest.mark.parametrize("name", ["handshake_timeout", "close_timeout", "kill_timeout", "receive_chunk", "max_message", "backlog"])
@pytest.mark.parametrize("value", [0, -1, float("nan")])
def test_a_bound_that_allows_nothing_is_refused(name: str, value: float) -> None:
    """Zero, less and no number at all are mistakes, and the message names the option."""
    with pytest.raises(UsageError, match=name):
        TransportOptions(**{name: value})
