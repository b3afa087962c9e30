"""Keeps the connection of a client that blocks, for its peer and its streams.

Rules of this file:

* One thread at a time is inside a method here.
* A lost connection is made again when the program asks for something: nothing runs before that.
"""

import time
from collections.abc import Callable
from contextlib import suppress
from time import monotonic
from typing import ParamSpec, TypeVar

from penstock.api import ConnectionLost
from penstock.blocking._connection import BlockingConnection, connect_once
from penstock.blocking._guard import OneThread
from penstock.client import NOW, ConnectionKeeper, Endpoint, EndpointSettings, GiveUp, TryAfter
from penstock.session import own_copy

T = TypeVar("T")
P = ParamSpec("P")


class BlockingKeeper(ConnectionKeeper[BlockingConnection]):
    """Keeps the connection of one client."""

    def __init__(self, settings: EndpointSettings) -> None:
        """Connect. Raises the error of the last attempt."""
        super().__init__(settings)
        self.guard: OneThread = OneThread()
        """A ``with`` block around all that uses the connection."""
        self.use(self._connect(NOW))

    def current(self) -> BlockingConnection:
        """Return the connection; make it again if it was lost and there is a policy for that.
        Raises the error of the last attempt if no further one is made.

        Call it inside of `guard`.
        """
        connection, reconnector = self.connection, self.reconnector
        if self.settings.reconnect is None:
            return connection
        reconnector.check()
        endpoint = connection.endpoint
        # A connection that ends takes no new stream: after the goodbyes the next one is made.
        connection.wait_until(lambda: not endpoint.is_closing, None, "the end of the connection")
        if not endpoint.is_over:
            return connection
        decision = self.after_loss(monotonic())
        if isinstance(decision, TryAfter):
            connection.leave()
            with suppress(ConnectionLost):
                self.use(self._connect(decision))
        reconnector.check()
        return self.connection

    # --- for streams

    def open_stream(self, subscribe_to: Callable[[Endpoint], None], timeout: float | None) -> None:
        """Subscribe as soon as the connection is there and has room."""
        with self.guard:
            connection = self.current()
            connection.wait_until(
                lambda: connection.endpoint.has_room, deadline_of(timeout), "room to subscribe"
            )
            connection.attend(subscribe_to, connection.endpoint)
            connection.attend(connection.flush)

    def take(
        self, take: Callable[[], T | None], is_readable: Callable[[], bool], timeout: float | None
    ) -> T | None:
        """Return what `take` returns. If that is None, wait until the stream is readable, and
        call `take` again.
        """
        with self.guard:
            connection = self.connection
            taken = connection.attend(take)
            # Also after the second call: to take may request more elements.
            connection.attend(connection.flush)
            if taken is None and not is_readable():
                connection.wait_until(is_readable, deadline_of(timeout), "an element")
                taken = connection.attend(take)
                connection.attend(connection.flush)
            return taken

    def attend(self, act: Callable[P, T], *arguments: P.args, **options: P.kwargs) -> T:
        """Call `act`, which changes the connection, and send what it has queued."""
        with self.guard:
            result = self.connection.attend(act, *arguments, **options)
            self.connection.attend(self.connection.flush)
            return result

    # --- for the block

    def leave(self) -> None:
        """Say goodbye and close; a further connection is not made."""
        with self.guard:
            self.stop()
            self.connection.leave()

    # --- inside

    def _connect(self, decision: TryAfter | GiveUp) -> BlockingConnection:
        """Return a connection, after as many attempts as the policy permits.
        Raises the error of the last one.
        """
        while isinstance(decision, TryAfter):
            time.sleep(decision.seconds)
            self.reconnector.on_attempt()
            try:
                return connect_once(self.settings)
            except ConnectionLost as error:
                decision = self.reconnector.on_lost(error, opened_at=None, now=monotonic())
        raise own_copy(decision.error)


def deadline_of(seconds: float | None) -> float | None:
    """Return the time at which a wait of that length ends, None for a wait without an end."""
    return None if seconds is None else monotonic() + seconds
