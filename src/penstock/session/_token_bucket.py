"""A token bucket: so many at once, so many per second after that. Time is told to it."""


class TokenBucket:
    """Holds up to `burst` tokens and gains `rate` a second; in any s seconds it lets through at most burst + s * rate."""

    __slots__ = ("_burst", "_filled", "_rate", "_tokens")

    def __init__(self, burst: float, rate: float) -> None:
        self._burst = burst
        self._rate = rate
        self._tokens = burst
        self._filled = float("-inf")

    def spend(self, tokens: float, now: float) -> bool:
        """Take `tokens` and return True, or return False where there are not so many left."""
        if now != self._filled:
            # Filled whenever the time has changed, short of tokens or not: what a full bucket would have gained is lost, not saved up.
            # All messages of one chunk are told the same time, so most calls compute nothing here.
            held = self._tokens + (now - self._filled) * self._rate
            self._tokens = held if held < self._burst else self._burst
            self._filled = now
        if self._tokens < tokens:
            return False
        self._tokens -= tokens
        return True
