"""Publishers that do not know when it is over."""

from typing import Any

from tck.tests._honest_publishers import HonestLine
from tck.tests._saboteur import publisher_saboteur


class _GoesOn(HonestLine):
    """A line that remembers its subscriber after the end, and signals again when it is asked."""

    gone: Any = None

    def goes_on_after(self, signal: str) -> bool:
        raise ValueError(f"{signal}: say after which end it goes on")

    def end(self, signal: str, *arguments: Any) -> None:
        if self.goes_on_after(signal):
            self.gone = self.subscriber
        super().end(signal, *arguments)

    def request(self, n: int, /) -> None:
        if self.gone is not None:
            self.deliver(self.gone, "on_next", "one more")
        super().request(n)


class GoesOnAfterCompletion(_GoesOn):
    """After on_complete a request is answered with one more element."""

    def goes_on_after(self, signal: str) -> bool:
        return signal == "on_complete"


class GoesOnAfterFailure(_GoesOn):
    """After the on_error of a failed publisher a request is answered with one more element."""

    def goes_on_after(self, signal: str) -> bool:
        return signal == "on_error" and self.publisher.count == 0


class GoesOnAfterRefusal(_GoesOn):
    """After the on_error that refuses a demand a request is answered with one more element."""

    def goes_on_after(self, signal: str) -> bool:
        return signal == "on_error" and self.demand == 0 and self.publisher.count > 0


_LATE = "arrived after the end"

SABOTEURS = [
    publisher_saboteur(GoesOnAfterCompletion, {"nothing_follows_on_complete": _LATE}),
    publisher_saboteur(GoesOnAfterFailure, {"nothing_follows_the_failure_of_the_publisher": _LATE}),
    publisher_saboteur(GoesOnAfterRefusal, {"nothing_follows_the_refusal_of_a_demand": _LATE}),
]
