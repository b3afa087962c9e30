"""The session as its dialect sees it."""

from typing import Protocol

from penstock.api import PenstockError, ProtocolError
from penstock.session._channel import Channel
from penstock.session._stream_tables import StreamTables


class DialectHost(Protocol):
    """The part of the session that a dialect uses.

    `channel` has the limits, the time and the state. A dialect queues its own messages with
    `channel.send`, answers to the peer with `channel.answer`, and counts odd but harmless input
    with `channel.count_oddity`. `streams` has the tables of streams; the dialect passes each
    message about a stream to one of its `receive_…` methods.
    """

    # A protocol and not the class, so that a dialect, also a plugin's, depends on nothing above it:
    # no import circle, and a list to go by.
    @property
    def channel(self) -> Channel:
        """The connection, as its streams see it."""

    @property
    def streams(self) -> StreamTables:
        """The streams of the connection."""

    # Kept by the session: the served dialect cannot encode the refusal of another protocol.
    foreign_refusal: bytes | None
    """The bytes, perhaps none, that a client of another protocol gets instead of a goodbye; None
    for a client that gets a goodbye.
    """

    def hello_sent(self) -> None:
        """Note that this side's hello is queued;
        or, if a server sends none, that the client's has come.
        """

    def receive_introduction(self, data: bytes, *, is_held: bool = False) -> None:
        """Let the service examine the peer's introduction.
        Until it has decided nothing more is fed to the dialect.

        With `is_held` an extension examines it first.
        Call this again when the extension has let the peer in.
        """

    def receive_hello(self) -> None:
        """Open the session: the peer's hello has come and is accepted."""

    def receive_goodbye(self, reason: str, error: Exception | None = None) -> None:
        """End the session with the peer's goodbye. `error` is what streams get if the dialect
        knows better what the goodbye means.
        """

    def close(
        self, reason: str, error: Exception | None = None, *, at: float | None = None
    ) -> None:
        """Say goodbye and end every stream, in both directions. With `at` a connection that is
        not open yet ends at that time.
        """

    def close_protocol_error(self, error: ProtocolError) -> None:
        """End the connection because of a mistake of the peer."""

    def close_internal_error(self, error: PenstockError) -> None:
        """End the connection because of a fault on this side.
        The peer is told no more than that.
        """
