"""The stream of a client without trio: where it begins and stops, and where it goes on over the
next connection.

Rules of this file:

* The positions of elements are implied: the publisher tells that of the first one, and
  `StreamBuffer` counts.
* A stream goes on after a lost connection only if its position is known: without one elements would
  be missing, or come twice. It stays open and is cut: its reader reads all that has arrived, and
  then subscribes over the next connection.
* The word ``latest`` as the place to stop is decided once: on a later connection it would mean a
  later position.
"""

from collections.abc import Callable
from functools import partial
from operator import length_hint
from typing import TypeVar

from penstock.api import (
    UNBOUNDED,
    ConnectionLost,
    Limits,
    PositionedName,
    Positions,
    ProtocolError,
    StreamState,
    Subscription,
)
from penstock.client._endpoint import Endpoint
from penstock.client._opening import StreamOpening
from penstock.reader import RemoteBuffer
from penstock.spi import load_elements

T = TypeVar("T")
R = TypeVar("R")


class ClientStream(RemoteBuffer[T]):
    """The elements of one subscription, over one connection after another."""

    def __init__(self, opening: StreamOpening, limits: Limits) -> None:
        super().__init__(demand=opening.demand)
        name = opening.name
        self._typed_name = name
        # A later connection needs other places than the name was typed with.
        self._name = name if isinstance(name, PositionedName) else PositionedName.parse(name)
        self._stop = self._name.stop
        if isinstance(name, PositionedName) and isinstance(name.start, int):
            # Known without an answer: over a connection without the extension *position* none
            # comes.
            self._first = name.start
        self._goes_on = opening.goes_on
        self._is_cut = False  # the connection is lost, and the stream waits for the next one
        if opening.loader is not None:
            self.load_with(partial(load_elements, opening.loader))
        self.count_bytes(opening.window_bytes, limits.max_element)

    # --- the subscriber

    def on_subscribe(self, subscription: Subscription, /) -> None:
        if not self._is_cut:
            super().on_subscribe(subscription)
            return
        self._is_cut, self._subscription = False, subscription
        # The demand that the last connection has left, and no more. Unbounded demand is not
        # counted.
        outstanding = (
            UNBOUNDED if self._requested == UNBOUNDED else self._requested - self._received
        )
        if outstanding:
            subscription.request(outstanding)

    def on_fact(self, fact: object, /) -> None:
        if not isinstance(fact, Positions):
            return
        asked = None if self._first is None else self._first + self._received
        if asked is not None and fact.first != asked:
            text = (
                f"{self._name.bare!r} begins at position {fact.first:,}, "
                f"and {asked:,} was asked for. The peer must act"
            )
            self._fail(ProtocolError(text, reason="protocol:position"))
            return
        if self._stop == "latest" and fact.latest is not None:
            self._stop = fact.latest
        super().on_fact(fact)

    def on_error(self, error: BaseException, /) -> None:
        if (
            isinstance(error, ConnectionLost)
            and self._goes_on
            and self._first is not None
            and self._state is StreamState.OPEN
        ):
            self._is_cut, self._subscription = True, None
            self._wake_reader()
        else:
            super().on_error(error)

    # --- reading, for subclasses

    def _subscribe_to(self, endpoint: Endpoint) -> None:
        """Subscribe over a connection, or go on over the next one.
        Call it when the outbox has room.
        """
        name = self._typed_name
        if self._is_cut and self._first is not None:
            name = self._name.at(self._first + self._received, self._stop)
        endpoint.subscribe(name, self, self._window)

    @property
    def _is_readable(self) -> bool:
        return super()._is_readable or self._is_cut

    def _try(self, take: Callable[[], R]) -> R | None:
        """Return what `take` returns.
        None if the reader has to wait, the stream has ended, or it is cut.
        """
        if not self._arrived and not length_hint(self._slice):
            self._renew()
            if not self._arrived:
                return None
        return take() or None

    def _has_ended(self) -> bool:
        """Return whether the stream has ended, and all was read.
        Raises what it has failed with, once.
        """
        if self._arrived or self._state is StreamState.OPEN:
            return False
        failure = self._take_failure()
        if failure is None:
            return True
        try:
            raise failure
        finally:
            del failure  # it refers to this frame through its traceback
