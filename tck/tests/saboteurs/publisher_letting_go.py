"""Publishers that keep what they should let go."""

from typing import Any

from tck.tests._honest_publishers import HonestLine
from tck.tests._saboteur import publisher_saboteur


class KeepsTheCancelled(HonestLine):
    """After a cancel the subscriber stays in a field."""

    kept: Any = None

    def cancel(self) -> None:
        self.kept = self.subscriber
        super().cancel()


SABOTEURS = [publisher_saboteur(KeepsTheCancelled, {"cancel_drops_the_subscriber": "is still referred to by"})]
