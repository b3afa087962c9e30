"""A token bucket: so many at once, so many per second after that. Time is told to it."""


class TokenBucket:
    """Holds up to `burst` tokens and gains `rate` a second."""

    __slots__ = ("_burst", "_filled", "_rate", "_tokens")

    def __init__(self, burst: float, rate: float) -> None:
        self._burst = burst
        self._rate = rate
        self._tokens = burst
        self._filled: float | None = None

    def spend(self, tokens: float, now: float) -> bool:
        """Take `tokens` and return True, or return False where there are not so many left."""
        if self._tokens < tokens:
            # Time is only asked for when the tokens run short: most of the time nothing is computed here.
            since = now if self._filled is None else self._filled
            self._tokens = min(self._burst, self._tokens + (now - since) * self._rate)
            self._filled = now
        elif self._filled is None:
            self._filled = now
        if self._tokens < tokens:
            return False
        self._tokens -= tokens
        return True
