"""Ends connections that are not used and streams without demand or traffic:
each holds a place that another peer could use.

Streams are looked at four times in the age that they may have, all at once. So no element and
hardly a request costs anything for it; a stream ends after its age, and at the latest half as long
again.
"""

from collections.abc import Iterable, Sequence
from typing import Final, Protocol, TypeVar

import attrs

from penstock.api import LimitExceeded, Limits

WARNING_AGE: Final = 3600.0
"""If no age is set, idle streams are only reported, once they are this old."""

LOOKS_PER_AGE: Final = 4


class IdleStream(Protocol):
    """The attributes of a sent stream that its idleness depends on."""

    idle_since: float | None

    @property
    def is_idle(self) -> bool:
        """Nothing was requested, and no element is on its way."""

    def cancel_with_error(self, text: str) -> None:
        """Cancel the publisher and send an error with this text."""


T = TypeVar("T", bound=IdleStream)


@attrs.frozen
class IdleVerdict:
    """The result of a look at the streams."""

    look_again_at: float | None
    ended: Sequence[IdleStream] = ()
    warning: LimitExceeded | None = None


class IdleTimeouts:
    """Watch one session for idleness."""

    __slots__ = ("_limits", "_look_at", "_traffic", "_unused_since")

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._unused_since: float | None = None
        self._traffic = 0
        self._look_at: float | None = None

    def check_connection(
        self, now: float, *, is_wanted: bool, traffic: int
    ) -> tuple[float | None, bool]:
        """Return when to look again, and whether the connection has not been used for too long.

        `is_wanted` keeps it. `traffic` is a number that grows with its use:
        most requests begin and end between two looks.
        """
        if is_wanted:
            self._unused_since = None
            return None, False
        if self._unused_since is None or traffic != self._traffic:
            # The time of the look, not of the use: a look follows each received chunk within 50 ms,
            # so the time runs late by that.
            self._unused_since, self._traffic = now, traffic
        due = self._unused_since + self._limits.idle_connection
        return (None, True) if now >= due else (due, False)

    def check_streams(self, now: float, streams: Iterable[T]) -> IdleVerdict:
        """Return when to look again, the streams to end, and a warning if streams are idle
        that no limit ends.
        """
        age = self._limits.idle_subscription_age or WARNING_AGE
        # Called with every tick, so most calls end here.
        if self._look_at is not None and now < self._look_at:
            return IdleVerdict(self._look_at)
        # The first look only sets the time of the next one:
        # only looks set `idle_since`, so no stream can be old yet.
        is_first, self._look_at = self._look_at is None, now + age / LOOKS_PER_AGE
        if is_first:
            return IdleVerdict(self._look_at)
        # All streams in one loop four times an age costs less than a timer for each:
        # 100,000 idle streams are the measure.
        old = [stream for stream in tuple(streams) if self._is_old(stream, now, age)]
        if self._limits.idle_subscription_age is not None:
            return IdleVerdict(self._look_at, ended=old)
        for stream in old:
            # Reported once, and not ended: without an age the program has chosen to keep idle
            # streams.
            stream.idle_since = float("inf")  # never old again
        return IdleVerdict(self._look_at, warning=_warning(len(old), age) if old else None)

    def forget_streams(self) -> None:
        """Start again with the next stream: none is open now."""
        self._look_at = None

    def _is_old(self, stream: IdleStream, now: float, age: float) -> bool:
        # idle_since is also set to None by each request, so a stream
        # that was busy between two looks starts anew.
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
