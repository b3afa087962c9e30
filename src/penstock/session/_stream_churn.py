"""Limits streams that are refused or cancelled soon after they were opened: each costs this side
more than it costs the peer.
"""

from typing import Final

from penstock.api import Limits, ProtocolError
from penstock.session._token_bucket import TokenBucket

SHORT_SECONDS: Final = 1.0
"""A stream that lives at least this long costs no token."""


class StreamChurn:
    """Count the short streams of one connection."""

    __slots__ = ("_bucket", "began_at")

    def __init__(self, limits: Limits) -> None:
        # Streams that end by themselves do not count: an honest client was once cut off after 1,000
        # answered requests in a second.
        self._bucket = TokenBucket(limits.churn_burst, limits.churn_rate)
        self.began_at: list[float] = []
        """When the streams began that ended since the last verdict. Bounded by
        Limits.max_subscriptions for each received chunk.
        """

    def count(self, began_at: float) -> None:
        """Count a stream that has ended.

        Its length is judged later: the session's clock stands still between two chunks. With that
        clock a thousand streams that lived for hours and ended together would all look short.
        """
        self.began_at.append(began_at)

    def verdict(self, now: float) -> ProtocolError | None:
        """Return an error if too many short streams have ended.
        `now` must have been read after they ended.
        """
        if not self.began_at:
            return None
        began_at, self.began_at = self.began_at, []
        for began in began_at:
            # HTTP/2's rapid reset: opening and cancelling costs the peer two short messages,
            # and this side a publisher.
            if now - began < SHORT_SECONDS and not self._bucket.spend(1, now):
                return ProtocolError(
                    "streams are opened and ended faster than is allowed here (Limits.churn_rate)",
                    reason="limit:churn",
                )
        return None
