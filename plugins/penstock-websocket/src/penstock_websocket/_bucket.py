"""A token bucket, for frames that are cheap to send and cost the receiver time."""


class Bucket:
    """Hold up to `burst` tokens and gain `rate` a second. The caller tells the time."""

    def __init__(self, burst: float, rate: float) -> None:
        self._burst = burst
        self._rate = rate
        self._tokens = burst
        self._filled_at = 0.0

    def spend(self, now: float) -> bool:
        """Take a token and return True, or return False if none is left."""
        self._tokens = min(self._burst, self._tokens + (now - self._filled_at) * self._rate)
        self._filled_at = now
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True
