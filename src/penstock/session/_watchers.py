"""Watchers of things that may last only for a time on an open connection: an unfinished message or
element, an unused stream or connection.

Each watcher has one limit. It is asked when it is due (`Deadlines`), and then ends a stream or the
connection if the time is over.
"""

from math import inf
from typing import Final, Protocol

from penstock.api import LimitExceeded, ProtocolError
from penstock.session._channel import Channel
from penstock.session._reasons import IDLE
from penstock.session._sending_stream import SendingStream
from penstock.session._stream_tables import NOTED_WITHIN, StreamTables

WARNING_AGE: Final = 3600.0
"""If no age is set, idle streams are only reported, once they are this old."""

LOOKS_PER_AGE: Final = 4


class MessageAge:
    """Ends the connection if a message stays incomplete for `Limits.partial_age` (slow-loris).

    The bytes of an incomplete message are held. No bound on lengths ends that; its age does.
    """

    __slots__ = ("_channel", "_undecoded", "began_at", "due")

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        # A peer that announced a megabyte and sent a byte now and then was once never closed: every
        # byte counted as a sign of life.
        self.began_at: float | None = None
        """When the incomplete message began; None if there is none. The session looks at it."""
        self._undecoded = 0
        self.due: float = inf
        channel.deadlines.add(self)

    def note(self, received: int, undecoded: int, now: float) -> None:
        """Note that after `received` more bytes `undecoded` ones wait for the rest of a message."""
        if not undecoded:
            self.began_at = None
        # Compared with the sum: bytes that completed a message lower it by that message.
        elif undecoded < self._undecoded + received or self.began_at is None:
            # Something was decoded, so what waits now is the beginning of another message.
            self.began_at = now
            # Before the connection is open, the handshake has its own deadline and its own answer.
            if self._channel.deadlines.is_open:
                self._channel.deadlines.hasten(self, now + self._channel.limits.partial_age)
        self._undecoded = undecoded

    def look(self, now: float, /) -> float | None:
        """End the connection if the message is too old."""
        if self.began_at is None:
            return None
        age = self._channel.limits.partial_age
        if now < self.began_at + age:
            return self.began_at + age
        text = f"a message was left unfinished for more than {age:g} s (Limits.partial_age)"
        self._channel.fail_connection(ProtocolError(text, reason="limit:partial"))
        return None


class ElementAge:
    """Ends a stream if an element stays unfinished for `Limits.partial_age`. Others go on."""

    __slots__ = ("_channel", "_partials", "due")

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._partials = channel.budgets.partials
        self.due: float = inf
        channel.deadlines.add(self)

    def note(self, now: float) -> None:
        """Note that bytes have arrived while an element is unfinished."""
        # The byte that an overdue element waits for tells an abandoned one from a silent peer.
        age = 0.0 if self._partials.awaits_byte else self._channel.limits.partial_age
        self._channel.deadlines.hasten(self, now + age)

    def look(self, now: float, /) -> float | None:
        """End the streams whose element is too old."""
        due, overdue = self._partials.overdue(now, self._channel.last_input_at)
        for stream, is_silent in overdue:
            stream.on_partial_timeout(is_silent=is_silent)
        return due


class Closes(Protocol):
    """The session, as the watcher of an unused connection sees it."""

    @property
    def streams(self) -> StreamTables:
        """The streams of the connection."""

    @property
    def peer_leaves(self) -> bool:
        """The peer has said that it leaves when the streams have ended."""

    def end_left(self) -> bool:
        """End the session of a peer that leaves, without a stream. Return False if bytes for it
        wait.
        """

    def close(self, reason: str) -> None:
        """Say goodbye."""


class UnusedConnection:
    """Ends a connection that was not used for `Limits.idle_connection`: it holds a place. One
    whose peer has said that it leaves ends as soon as its streams have ended.

    A stream is a use for as long as it lasts. So nothing is due while one is open; its end is noted
    (`ConnectionUse.note`), and this is asked soon after that.
    """

    __slots__ = ("_age", "_session", "_used_at", "due")

    def __init__(self, session: Closes, channel: Channel) -> None:
        self._session = session
        self._used_at = channel.now
        self._age = channel.limits.idle_connection
        session.streams.use.watcher = self
        self.due: float = inf
        channel.deadlines.add(self)

    def look(self, now: float, /) -> float | None:
        """End the connection if it was not used for too long."""
        streams = self._session.streams
        use = streams.use
        has_streams = streams.has_streams()
        if use.is_noted or has_streams:
            # The time of the look, which is a little later than the use.
            use.is_noted, self._used_at = False, now
        if has_streams:
            return None
        if self._session.peer_leaves:
            return None if self._session.end_left() else now + NOTED_WITHIN
        if use.keeps_open:
            self._used_at = now
        if now < self._used_at + self._age:
            return self._used_at + self._age
        self._session.close(IDLE)
        return None


class IdleStreams:
    """Ends streams without demand or traffic after `Limits.idle_subscription_age`.

    Streams are looked at four times in the age that they may have, all at once. So no element and
    no request costs anything for it; a stream ends after its age, and at the latest half as long
    again. A timer for each would cost more: 100,000 idle streams are the measure.
    """

    __slots__ = ("_channel", "_streams", "due")

    def __init__(self, channel: Channel, streams: StreamTables) -> None:
        self._channel = channel
        self._streams = streams
        self.due: float = inf
        channel.deadlines.add(self)

    def look(self, now: float, /) -> float | None:
        """End the streams that are idle for too long, or report them if no age is set."""
        ends = self._channel.limits.idle_subscription_age
        age = ends or WARNING_AGE
        # A copy of the table, because a stream that ends leaves it.
        serving = tuple(self._streams.serving.values())
        old = [stream for stream in serving if _is_old(stream, now, age)]
        for stream in old:
            if ends is not None:
                stream.cancel_with_error(IDLE)
            else:
                # Reported once, and not ended: the program has chosen to keep idle streams.
                stream.idle_since = inf
        if old and ends is None:
            self._streams.delegate.on_warning(_warning(len(old), age))
        return now + age / LOOKS_PER_AGE


def _is_old(stream: SendingStream, now: float, age: float) -> bool:
    # Each request sets `idle_since` to None, so a stream that was busy between two looks starts
    # anew.
    if not stream.is_idle:
        stream.idle_since = None
    elif stream.idle_since is None:
        stream.idle_since = now
    return stream.idle_since is not None and now >= stream.idle_since + age


def _warning(count: int, age: float) -> LimitExceeded:
    return LimitExceeded(
        f"{count} of the streams that a peer has open have had neither demand nor traffic for "
        f"{age:g} s. You need not act; Limits(idle_subscription_age=...) ends such streams, "
        "Limits.untrusted() after an hour",
        limit="idle_subscription_age",
        value=age,
    )
