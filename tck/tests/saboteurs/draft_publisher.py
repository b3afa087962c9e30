"""Publishers of the draft that are too modern."""

from tck.tests._honest_draft import DraftLine
from tck.tests._saboteur import publisher_saboteur


class IgnoresRequestsWhenOver(DraftLine):
    """request_more on a cancelled subscription is ignored."""

    def refuse_when_over(self, method: str) -> None:
        if method != "request_more":
            super().refuse_when_over(method)


SABOTEURS = [
    publisher_saboteur(
        IgnoresRequestsWhenOver,
        {"request_more_on_a_cancelled_subscription_raises": "returned normally, but it must raise InvalidStateError"},
    ),
]
