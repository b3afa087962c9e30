"""The delegate of a client's session: its answers to the calls that a client has no use for."""

from penstock.api import Model, Request, UsageError
from penstock.session import SendingStream
from tests.client._settings import HELLO, endpoint


def test_messages_that_only_a_server_handles_change_nothing() -> None:
    """An introduction, and a message without an answer."""
    made = endpoint()
    made.receive(HELLO, 0.0)
    made.on_introduction(b"data")
    made.on_fire_and_forget(Request(Model.FIRE_AND_FORGET, b"data"))
    assert not made.has_output
    assert made.opened_at == 0.0


def test_a_warning_goes_to_the_hook() -> None:
    """A warning is passed to `on_violation`, and ends nothing."""
    heard: list[Exception] = []
    made = endpoint(on_violation=heard.append)
    made.on_warning(UsageError("odd"))
    assert [str(error) for error in heard] == ["odd"]
    assert not made.is_closing


def test_a_request_with_data_is_refused() -> None:
    """A client publishes by name only."""
    made = endpoint()
    made.receive(HELLO, 0.0)
    stream = SendingStream(made.session.channel, 5, Request(Model.RESPONSE, b"data"), 1)
    made.serve(stream)
    assert stream.is_ended
