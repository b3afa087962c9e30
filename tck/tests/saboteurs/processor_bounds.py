"""Processors that lose early demand, or keep more than they declare (rule 4.1), and subscribers
that fail late (rules 2.1, 3.8).
"""

from typing import Any

from tck.tests._honest_fan_out import HonestFanOut
from tck.tests._honest_subscribers import HonestProcessor, HonestSubscriber, ManualHonestSubscriber
from tck.tests._saboteur import processor_saboteur, subscriber_saboteur


class ForgetsEarlyDemand(HonestProcessor):
    """A request that comes before upstream has come is forgotten."""

    def request(self, n: int, /) -> None:
        if self.upstream is not None or self.over or n < 1:
            super().request(n)


class KeepsTheLatestEarlyDemand(HonestProcessor):
    """Of several requests that come before upstream has come, only the latest counts."""

    def request(self, n: int, /) -> None:
        if self.upstream is None and n > 0:
            self.demand = 0
        super().request(n)


class KeepsMoreThanItDeclares(HonestFanOut):
    """It keeps eight elements, and declares four."""

    window = 8


class RaisesAtItsFiftiethElement(HonestSubscriber):
    """on_next raises at the 50th element."""

    count = 0

    def on_next(self, element: Any, /) -> None:
        super().on_next(element)
        self.count += 1
        if self.count == 50:
            raise RuntimeError("this is the 50th")


class RequestsNoMoreAfterAHundred(ManualHonestSubscriber):
    """It makes no request any more after a hundred requests."""

    count = 0

    def request(self, n: int) -> None:
        self.count += 1
        if self.count <= 100:
            super().request(n)


class HidesLateElements(HonestSubscriber):
    """Its handler gets no element after the 300th."""

    count = 0

    def on_next(self, element: Any, /) -> None:
        self.count += element is not None
        if self.count <= 300:
            super().on_next(element)
        else:
            self.next_request()


SABOTEURS = [
    processor_saboteur(
        ForgetsEarlyDemand,
        {"demand_before_upstream_has_come_is_kept": "requested downstream, and 0"},
    ),
    processor_saboteur(
        KeepsTheLatestEarlyDemand,
        {"demand_before_upstream_has_come_is_kept": "requested downstream, and 2"},
    ),
    processor_saboteur(
        KeepsMoreThanItDeclares,
        {"no_more_is_kept_than_declared": "it keeps 8 elements, and declares buffer_size = 4"},
    ),
    subscriber_saboteur(
        RaisesAtItsFiftiethElement,
        {"a_long_stream_is_handled": "on_next raised RuntimeError('this is the 50th')"},
    ),
    subscriber_saboteur(
        RequestsNoMoreAfterAHundred,
        {"a_long_stream_is_handled": "after 100 elements it requests no more"},
    ),
    subscriber_saboteur(
        HidesLateElements,
        {"a_long_stream_is_handled": "400 elements were signalled, but the handlers saw 300"},
    ),
]
