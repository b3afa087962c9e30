"""`Rejected.processed` is False only if the protocol says that nothing was done.
A text of the peer never says it.
"""

import pytest

from penstock.api import (
    ConnectionLost,
    Model,
    PublicError,
    PublisherFailed,
    Rejected,
    Request,
    Role,
)
from penstock.protocols import reactivesocket, rsio
from penstock.session import CONNECTION_REASONS, STREAM_REASONS
from tests.protocols.reactivesocket._pair import RawSocket, RsPair
from tests.session._pair import Pair, RawPeer, RecordingSubscriber, open_stream

TOKENS = sorted({reason.token for reason in (*CONNECTION_REASONS, *STREAM_REASONS)} - {""})
PUBLIC_TEXTS = ["refused", "draining", "no such publisher", "shutdown", "version 0", "out of stock"]


@pytest.mark.parametrize("reason", [*TOKENS, "protocol:type 0x07", "a text of another server"])
def test_no_error_of_reactivesocket_says_that_nothing_was_done(reason: str) -> None:
    """The server may have accepted the SETUP without an answer, and acted on the
    fire-and-forget, before it ended the connection.
    """
    raw, subscriber = RawSocket(Role.CLIENT), RecordingSubscriber(1)
    raw.session.streams.fire(Request(Model.FIRE_AND_FORGET, b"pay"))
    raw.session.subscribe(Request(Model.STREAM, b"s"), subscriber)
    raw.send(reactivesocket.Error(stream_id=0, data=reason.encode()))
    (end,) = subscriber.ends
    assert isinstance(end, Rejected | ConnectionLost)
    assert getattr(end, "processed", True) is True


@pytest.mark.parametrize("text", PUBLIC_TEXTS)
@pytest.mark.parametrize("delivered", [0, 2])
def test_a_public_error_over_reactivesocket_is_a_failure(text: str, delivered: int) -> None:
    """A handler that raised PublicError has run. Its text proves nothing else."""
    pair = RsPair()
    source, subscriber = pair.ask(Model.STREAM)
    source.emit(*[b"x"] * delivered)
    source.fail(PublicError(text))
    pair.settle()
    (end,) = subscriber.ends
    assert type(end) is PublisherFailed
    assert str(end).startswith(text)


@pytest.mark.parametrize("text", PUBLIC_TEXTS)
def test_a_public_error_over_rsio_is_a_failure(text: str) -> None:
    """After onSubscribe an error is a failure, before it a refusal.
    The place decides, not the text.
    """
    pair = Pair()
    source, subscriber = open_stream(pair, 5)
    source.fail(PublicError(text))
    pair.settle()
    (end,) = subscriber.ends
    assert type(end) is PublisherFailed
    assert str(end).startswith(text)


@pytest.mark.parametrize("text", PUBLIC_TEXTS)
def test_a_refusal_over_rsio_may_have_been_processed(text: str) -> None:
    """The function that makes the publisher may have acted before it refused."""
    raw, subscriber = RawPeer(Role.CLIENT).handshake(), RecordingSubscriber(1)
    raw.session.subscribe("s", subscriber)
    raw.send(rsio.OnError(subscriber=0, error=text))
    (end,) = subscriber.ends
    assert type(end) is Rejected
    assert end.processed is True


def test_a_version_mismatch_is_the_one_safe_refusal() -> None:
    """A server without a common version discards the client's messages, and says
    so in the place of its hello.
    """
    raw, subscriber = RawPeer(Role.CLIENT), RecordingSubscriber(1)
    raw.session.subscribe("s", subscriber)
    raw.send(rsio.Goodbye(reason="version 7"))
    (end,) = subscriber.ends
    assert isinstance(end, Rejected)
    assert end.processed is False


def test_the_same_goodbye_after_the_hello_is_not_safe() -> None:
    """By then the server may have acted."""
    raw, subscriber = RawPeer(Role.CLIENT).handshake(), RecordingSubscriber(1)
    raw.session.subscribe("s", subscriber)
    raw.send(rsio.Goodbye(reason="version 7"))
    assert [type(end) for end in subscriber.ends] == [ConnectionLost]
