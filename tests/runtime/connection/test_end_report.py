"""The exception that describes how a transport ended."""

import pytest
import trio

from penstock.api import ConnectionLost, LimitExceeded, Limits, PluginError
from penstock.runtime.connection._end_report import describe_transport_end, is_disconnect
from penstock.session import CUT, CUT_EARLY
from penstock.spi import MessageConnection, PeerIdentity


class Ended(MessageConnection):
    """A transport that has ended, with a farewell or without."""

    def __init__(self, words: str | Exception | None = None) -> None:
        super().__init__(peer=PeerIdentity(address="there"))
        self.words = words

    def farewell(self) -> str | None:
        if isinstance(self.words, Exception):
            raise self.words
        return self.words

    async def send(self, data: object, /) -> None: ...

    async def receive(self) -> None: ...

    async def aclose(self) -> None: ...

    async def abort(self) -> None: ...


def told(
    cause: Exception | None, words: str | Exception | None = None, *, was_open: bool = True
) -> tuple[Exception, list[Exception]]:
    """Return the description, and the reports."""
    faults: list[Exception] = []
    return describe_transport_end(
        Ended(words), cause, was_open=was_open, limits=Limits(), on_violation=faults.append
    ), faults


def caused_by(cause: Exception) -> Exception:
    """Return a broken stream's exception with its cause."""
    broken = trio.BrokenResourceError()
    broken.__cause__ = cause
    return broken


@pytest.mark.parametrize(
    ("cause", "words", "said"),
    [
        (None, None, CUT),
        (None, "the child ended with status 3", f"{CUT}. The child ended with status 3"),
        (trio.BrokenResourceError(), None, CUT),
        (caused_by(OSError("no route")), None, f"{CUT}. The system says: no route"),
        (caused_by(OSError("no route")), "the child ended", f"{CUT}. The child ended"),
    ],
)
def test_a_peer_that_is_gone_is_a_lost_connection(
    cause: Exception | None, words: str | None, said: str
) -> None:
    """With the farewell of the transport, or else the system's error."""
    error, faults = told(cause, words)
    assert is_disconnect(cause)
    assert (type(error), str(error), faults) == (ConnectionLost, said, [])


def test_an_end_before_the_hello_says_so() -> None:
    """The server may speak another protocol."""
    assert str(told(None, was_open=False)[0]) == CUT_EARLY


def test_a_stalled_send_names_the_limit() -> None:
    """A reader of the text can raise it."""
    assert "Limits.write_stall" in str(told(trio.TooSlowError())[0])


def test_a_limit_of_the_transport_keeps_its_text() -> None:
    """Its own text names the limit."""
    error, _ = told(LimitExceeded("a message of 9 bytes", limit="max_message", value=8))
    assert isinstance(error, ConnectionLost)
    assert "a message of 9 bytes" in str(error)


def test_any_other_exception_is_a_fault_of_the_transport() -> None:
    """Its author must act."""
    error, _ = told(ZeroDivisionError())
    assert not is_disconnect(ZeroDivisionError())
    assert isinstance(error, PluginError)
    assert "Ended" in str(error)


def test_a_farewell_that_raises_is_reported_and_hides_nothing() -> None:
    """The description is made without it."""
    fault = ZeroDivisionError()
    error, faults = told(None, fault)
    assert (str(error), faults) == (CUT, [fault])
