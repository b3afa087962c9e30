"""The errors of a connection that was refused, or not opened in time."""

import pytest

from penstock.api import ConnectionLost, Rejected
from penstock.client import endpoint_settings, late, not_made, raise_refusal
from penstock.protocols import rsio
from penstock.spi import Reconnect

URL = "tcp://127.0.0.1:7000"


def test_a_late_server_is_named_with_its_time() -> None:
    """The time is that of the limits."""
    assert str(late(endpoint_settings(URL))) == "tcp://127.0.0.1:7000 did not answer within 10.0 s"


def test_a_refusal_is_raised_as_a_copy_and_nothing_else_is() -> None:
    """One exception object is not raised twice.
    A refusal that passes is left to the policy that reconnects.
    """
    refusal = Rejected("not you")
    with pytest.raises(Rejected, match="not you") as caught:
        raise_refusal(refusal, endpoint_settings(URL))
    assert caught.value is not refusal
    raise_refusal(None, endpoint_settings(URL))
    raise_refusal(ConnectionLost("gone"), endpoint_settings(URL))
    raise_refusal(Rejected("full", temporary=True), endpoint_settings(URL, reconnect=Reconnect()))
    with pytest.raises(Rejected, match="full"):
        raise_refusal(Rejected("full", temporary=True), endpoint_settings(URL))


def test_a_dialect_that_raises_is_named_with_its_error() -> None:
    """The error is the cause; a dialect without a name is shown by its `repr`."""
    error = KeyError("x")
    named = not_made(rsio.RsioDialect, error)
    assert str(named) == "the dialect 'rsio' raised when its connection was made: KeyError('x')"
    assert named.__cause__ is error
    assert "the dialect 5 raised" in str(not_made(5, error))  # type: ignore[arg-type]  # no name
