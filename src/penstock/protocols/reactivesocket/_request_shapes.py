"""The shapes of open requests: how the answer of each ends. Two tables, which the dialect's sending and receiving sides share."""

from penstock.api import Model


class RequestShapes:
    """What is known of open requests beyond the session's tables of streams."""

    __slots__ = ("answering", "single")

    def __init__(self) -> None:
        self.single: set[int] = set()
        """Requests of this side's for one value: the first response ends each, whether it says so or not."""
        self.answering: dict[int, Model] = {}
        """Requests of the peer's that do not end as a plain stream does. `Model.NAMED` marks one whose value was sent with its end."""
