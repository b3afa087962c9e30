"""Cuts the pieces of a publisher of fixed-size elements into single elements,
for a subscriber that counts each of them.
"""

from collections.abc import Sequence
from typing import Any

from penstock.api import Subscriber, UsageError, add_demand, on_next_many_of, shown
from penstock.core import ElementRelay


class ElementsOfPieces(ElementRelay[Any]):
    """Delivers the requested elements of each piece. It asks for one piece at a time, and keeps no
    more than one. The end of the publisher waits for the elements that are kept.
    """

    __slots__ = ("_asked", "_demand", "_elements", "_error", "_has_ended", "_size", "_taken")

    def __init__(self, subscriber: Subscriber[Any], size: int) -> None:
        super().__init__(subscriber)
        self._size = size
        self._demand = 0
        self._elements: Sequence[bytes] = ()  # of the last piece
        self._taken = 0  # of these, the elements that were delivered
        self._asked = False
        self._has_ended = False  # the publisher, and not yet the subscriber
        self._error: BaseException | None = None  # with which it has ended

    def on_next(self, element: Any, /) -> None:
        if self._subscriber is None:
            return
        size = self._size
        if (
            not isinstance(element, bytes | bytearray | memoryview)
            or not element
            or len(element) % size
        ):
            what = f"a publisher with element_size={size} has published {shown(element)}"
            upstream, subscriber = self._upstream, self._detach()
            # Upstream first: it must not signal after the failure.
            if upstream is not None:
                upstream.cancel()
            if subscriber is not None:
                subscriber.on_error(UsageError(f"{what}; give whole elements, as bytes"))
            return
        # A copy of a bytearray: the publisher may change it while elements wait.
        data = bytes(element)
        self._elements, self._taken, self._asked = (
            [data[at : at + size] for at in range(0, len(data), size)],
            0,
            False,
        )
        self._deliver()

    def on_error(self, error: BaseException, /) -> None:
        # Elements that wait go first, as they would over a connection.
        self._error = error
        self.on_complete()

    def on_complete(self, /) -> None:
        self._has_ended, self._upstream = True, None
        self._deliver()

    def request(self, n: int, /) -> None:
        self._demand = add_demand(self._demand, n)
        self._deliver()

    def _deliver(self) -> None:
        subscriber = self._subscriber
        if subscriber is None:
            return
        part = self._elements[self._taken : self._taken + self._demand]
        # Counted first: the subscriber may request more inside its call.
        self._taken += len(part)
        self._demand -= len(part)
        if part:
            many = on_next_many_of(subscriber)
            if many is not None:
                many(part)
            else:
                for element in part:
                    # The subscriber may have cancelled at the element before.
                    if self._subscriber is not None:
                        subscriber.on_next(element)
        if self._subscriber is None or self._taken < len(self._elements):
            return
        if self._has_ended:
            self._detach()
            if self._error is None:
                subscriber.on_complete()
            else:
                subscriber.on_error(self._error)
        elif self._demand and not self._asked and self._upstream is not None:
            self._asked = True
            # One piece at a time: no more than one is kept.
            self._upstream.request(1)
