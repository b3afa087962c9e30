"""Notices a server that is stopped or gone and has no keepalive:
asks it for one value, which every responder must answer.

Rules of this file:

* Only a client probes. A server must answer requests;
  the draft does not say that a client takes any.
* Only while a stream is open: somewhere in the program a task waits for this server. A request
  costs the server more than a ping does.
* Any byte from the server shows that it lives, not only the answer.
  So a slow answer ends nothing while other frames come.
* No data: the data identifies a service, so this request names none. A server refuses it, or
  answers it; both are an answer.
"""

from math import inf
from typing import Any, Final

from penstock.api import ConnectionLost, Model, Request, Subscriber, Subscription
from penstock.session import DialectHost, ReceivingStream, explain_own

JITTER: Final = 0.15
"""The jitter of the keepalive: clients that connected together must not probe together."""

PROBE: Final = Request(Model.RESPONSE, b"")


class SilenceProbe:
    """Watches the silence of one server, from the time on at which the connection is open."""

    __slots__ = (
        "_channel",
        "_interval",
        "_probe",
        "_probed_at",
        "_session",
        "_started_at",
        "_streams",
        "due",
    )

    def __init__(self, session: DialectHost) -> None:
        self._session = session
        self._channel = session.channel
        self._streams = session.streams
        self._interval = session.channel.limits.keepalive * (
            1 + JITTER * (2 * session.channel.random() - 1)
        )
        # The first tick: a server that accepts a client sends nothing for it.
        self._started_at: float | None = None
        self._probed_at = float("-inf")
        self._probe: ReceivingStream | None = None
        self.due: float = inf
        self._channel.deadlines.add(self)

    def look(self, now: float, /) -> float | None:
        """Probe a silent server, or end the connection to one that stays silent.
        Return when to call again, or None.
        """
        # With the keepalive pings do the same for less, and both sides notice.
        if self._streams.use.keepalive is not None:
            return None
        if self._started_at is None:
            self._started_at = now
        heard_at = max(self._channel.last_input_at, self._started_at)
        if self._is_unanswered() and heard_at <= self._probed_at:
            return self._wait_for_answer(now)
        due = heard_at + self._interval
        if now < due:
            return due
        # The interval again: a stream may begin now, and nothing asks this when it does.
        return self._send_probe(now) if self._is_awaited() else now + self._interval

    def _send_probe(self, now: float) -> float:
        # At most one is open: the server has sent something since the last one,
        # and is perhaps slow to answer it.
        if self._probe is not None and self._is_unanswered():
            self._probe.cancel()
        self._probed_at = now
        self._probe = self._streams.ask(
            PROBE, lambda channel, stream_id: ReceivingStream(channel, stream_id, _Ignored(), 1)
        )
        self._channel.outbox.wake()
        return now + self._channel.limits.keepalive_timeout

    def _wait_for_answer(self, now: float) -> float | None:
        ends = self._probed_at + self._channel.limits.keepalive_timeout
        if now < ends:
            return ends
        self._session.close(
            "keepalive",
            ConnectionLost(f"this side ended the connection: {explain_own('keepalive')}"),
        )
        return None

    def _is_unanswered(self) -> bool:
        return self._probe is not None and self._streams.opened.get(self._probe.id) is self._probe

    def _is_awaited(self) -> bool:
        """Return whether a stream is open besides the last probe."""
        streams = self._streams
        # As a number: 1 if the last probe itself is one of the open streams.
        return (
            bool(streams.serving)
            or len(streams.opened) - streams.cancelled.count > self._is_unanswered()
        )


class _Ignored(Subscriber[Any]):
    """Takes the answer to a probe. The bytes were enough: they have come."""

    def on_subscribe(self, subscription: Subscription, /) -> None:
        """Do nothing."""

    def on_next(self, element: Any, /) -> None:
        """Do nothing."""

    def on_error(self, error: BaseException, /) -> None:
        """Do nothing."""

    def on_complete(self, /) -> None:
        """Do nothing."""
