"""The stream of a client without trio, over one connection after another.

Rules of this file:

* A stream goes on after a lost connection only if its position is known (`StreamPlace`): without
  one elements would be missing, or come twice. It stays open and is cut: its reader reads all that
  has arrived, and then subscribes over the next connection.
* A stream that a draining server refuses has not begun. It is cut in the same way.
"""

from collections.abc import Callable
from functools import partial
from operator import length_hint
from typing import TypeVar

from penstock.api import (
    UNBOUNDED,
    ConnectionLost,
    Positions,
    StreamState,
    Subscription,
    UsageError,
)
from penstock.client._client_peer import PeerEndpoint
from penstock.client._failures import was_moved
from penstock.client._opening import StreamOpening
from penstock.client._stream_place import StreamPlace
from penstock.reader import RemoteBuffer
from penstock.session import Session
from penstock.spi import load_elements

T = TypeVar("T")
R = TypeVar("R")


class ClientStream(RemoteBuffer[T]):
    """The elements of one subscription, over one connection after another."""

    def __init__(self, opening: StreamOpening) -> None:
        super().__init__(demand=opening.demand)
        self._place = StreamPlace(opening.name)
        self._first = self._place.first()
        self._is_entered = self._is_opened = False
        self._goes_on = opening.goes_on
        self._is_cut = False  # the stream waits for the next connection
        self._session: Session | None = None  # of the connection that has subscribed last
        if opening.loader is not None:
            self.load_with(partial(load_elements, opening.loader))
        opening.bound_bytes(self)

    # --- the subscriber

    def on_subscribe(self, subscription: Subscription, /) -> None:
        if not self._is_cut:
            super().on_subscribe(subscription)
            return
        self._is_cut = False
        if self._state is not StreamState.OPEN:
            # The program has cancelled while the reader waited for the connection.
            subscription.cancel()
            return
        self._subscription = subscription
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
        wrong = self._place.learn(fact, self._next_position)
        if wrong is None:
            super().on_fact(fact)
        else:
            self._fail(wrong)

    def on_error(self, error: BaseException, /) -> None:
        if self._goes_on and self._state is StreamState.OPEN and self._may_go_on(error):
            self._is_cut, self._subscription = True, None
            self._wake_reader()
        else:
            super().on_error(error)

    # --- for subclasses

    def _enter(self) -> None:
        """Begin the block. Raises UsageError for a second time."""
        if self._is_entered:
            raise UsageError(
                "this subscription was opened before; call subscribe() again for another one"
            )
        self._is_entered = True

    def _check_open(self, block: str) -> None:
        """Raise UsageError if the stream is read outside of its block."""
        if not self._is_opened:
            raise UsageError(
                f"this stream is not open; read it inside of its block: {block} "
                "peer.subscribe(…) as stream"
            )

    def _subscribe_to(self, endpoint: PeerEndpoint) -> None:
        """Subscribe over a connection, or go on over the next one.
        Call it when the outbox has room.
        """
        name = self._place.name_at(self._next_position if self._is_cut else None)
        self._session = endpoint.session
        endpoint.subscribe(name, self, self._window)
        self._is_opened = True

    def _may_go_on(self, error: BaseException) -> bool:
        """Return whether no element is missing or comes twice over the next connection."""
        if isinstance(error, ConnectionLost):
            return self._first is not None
        return self._session is not None and was_moved(error, self._session)

    @property
    def _next_position(self) -> int | None:
        """The position of the element that the peer sends next, if it is known."""
        return None if self._first is None else self._first + self._received

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
