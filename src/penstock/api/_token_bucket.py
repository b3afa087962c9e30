"""A bound on how often something may happen: a burst, and a rate."""


class TokenBucket:
    """A bound for what a peer may do: hold up to `burst` tokens and gain `rate` a second.
    In any s seconds at most burst + s * rate tokens are spent.

    It is full at first. The caller tells the time, in seconds of one clock that does not go back,
    such as `time.monotonic`; the bucket has no clock, no lock and no checks of its own.
    """

    __slots__ = ("_burst", "_filled_at", "_rate", "_tokens")

    def __init__(self, burst: float, rate: float) -> None:
        self._burst = burst
        self._rate = rate
        self._tokens = burst
        self._filled_at = float("-inf")

    def spend(self, tokens: float, now: float) -> bool:
        """Take `tokens` and return True. If fewer are left, take none and return False."""
        # All messages of one chunk have the same time, so most calls do no arithmetic here.
        if now != self._filled_at:
            # The bucket is filled at every change of the time, also if it is full: the gain of a
            # full bucket is lost, not saved up. It once was saved up, and a quiet peer could send
            # twice its burst.
            held = self._tokens + (now - self._filled_at) * self._rate
            self._tokens = held if held < self._burst else self._burst
            self._filled_at = now
        if self._tokens < tokens:
            return False
        self._tokens -= tokens
        return True

    def earn(self, tokens: float) -> None:
        """Add tokens, up to `burst`."""
        self._tokens = min(self._burst, self._tokens + tokens)
