"""The timers of an open connection: unfinished elements, unfinished messages, idleness.

Each watcher returns a verdict. This module ends streams because of it;
the session ends the connection.
"""

import attrs

from penstock.api import LimitExceeded, ProtocolError
from penstock.session._channel import Channel
from penstock.session._idle_timeouts import IdleTimeouts
from penstock.session._message_age import MessageAge
from penstock.session._reasons import IDLE
from penstock.session._stream_tables import StreamTables


@attrs.frozen
class Findings:
    """The result of one look."""

    due: float | None
    """When to look again."""
    error: ProtocolError | None = None
    """The peer has broken a limit of the connection."""
    is_idle: bool = False
    """The connection has not been used for too long."""
    warning: LimitExceeded | None = None
    """A report of idle streams that no limit ends."""


class Watchers:
    """Look at one open connection."""

    __slots__ = ("_channel", "_idle", "_message_age", "_streams")

    def __init__(self, channel: Channel, streams: StreamTables, message_age: MessageAge) -> None:
        self._channel = channel
        self._streams = streams
        self._idle = IdleTimeouts(channel.limits)
        self._message_age = message_age

    def look(self, now: float) -> Findings:
        """End the streams whose time is over, and return what the session must do, and
        when to look again.
        """
        # Elements first: a silent peer is a lost connection, which a client may make again,
        # rather than a protocol error.
        partials_due = self._end_overdue_parts(now)
        message_due, error = self._message_age.tick(now)
        # A stream that ends may have closed the connection, by an empty budget of cancelled ids.
        if error is not None or self._channel.state.is_closing:
            return Findings(None, error=error)
        use = self._streams.use
        # Any stream keeps the connection: the program wants it, even if nothing flows.
        is_wanted = self._streams.has_streams() or use.keeps_open
        connection_due, is_idle = self._idle.check_connection(
            now, is_wanted=is_wanted, traffic=use.traffic
        )
        # No more looks: the session closes now, and nothing that is due later matters.
        if is_idle:
            return Findings(None, is_idle=True)
        streams_due, warning = self._end_idle_streams(now)
        dues = (partials_due, message_due, connection_due, streams_due)
        return Findings(
            min((due for due in dues if due is not None), default=None), warning=warning
        )

    def _end_overdue_parts(self, now: float) -> float | None:
        due, overdue = self._channel.budgets.partials.overdue(now, self._channel.last_input_at)
        for stream, is_silent in overdue:
            # Other streams of the connection go on: only this one has an element that is too old.
            stream.on_partial_timeout(is_silent=is_silent)
        return due

    def _end_idle_streams(self, now: float) -> tuple[float | None, LimitExceeded | None]:
        if not self._streams.serving:
            # The next stream gets its whole age, and until then no timer runs.
            self._idle.forget_streams()
            return None, None
        verdict = self._idle.check_streams(now, self._streams.serving.values())
        for stream in verdict.ended:
            stream.cancel_with_error(IDLE)
        return verdict.look_again_at, verdict.warning
