"""The shapes of open requests: how the answer of each ends. The sending side and the receiving
side of the dialect share these tables.
"""

from penstock.api import Model


class RequestShapes:
    """The facts about open requests that the tables of the session do not have."""

    # Not in the streams: only this protocol has requests of different shapes, and
    # `penstock.session` knows no protocol.
    # Bounded by the open streams, because an entry is removed with the end of its request.
    __slots__ = ("answering", "single")

    def __init__(self) -> None:
        self.single: set[int] = set()
        """Requests for one value that this side has sent. The first response ends such a
        request, with the flag C or without it.
        """
        # Only shapes that do not end as a plain stream does:
        # a REQUEST_STREAM, the most frequent stream, has no entry.
        self.answering: dict[int, Model] = {}
        """Requests of the peer that do not end as a plain stream does. `Model.NAMED` marks one
        whose value was sent with its end.
        """
