"""Keeps the connection of a client that blocks, for its peer and its streams.

Rules of this file:

* One thread at a time is inside a method here.
* A lost connection is made again when the program asks for something: nothing runs before that.
* While the program waits for one connection, those to servers that drain are served as well, until
  nothing runs on them.
"""

import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from time import monotonic
from typing import ParamSpec, TypeVar

from penstock.api import ConnectionLost, StreamTimeout
from penstock.blocking._connection import BlockingConnection, connect_once, step
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
        # Connections to servers that drain, on which something runs.
        self._draining: list[BlockingConnection] = []
        self.use(self._connect(NOW))

    def current(self) -> BlockingConnection:
        """Return the connection; make it again if it was lost, or its server drains, and there is a
        policy for that. Raises the error of the last attempt if no further one is made.

        Call it inside of `guard`.
        """
        connection, reconnector = self.connection, self.reconnector
        if self.settings.reconnect is None:
            return connection
        reconnector.check()
        if not self.needs_next:
            return connection
        endpoint = connection.endpoint
        # A connection that ends takes no new stream: after the goodbyes the next one is made.
        self.wait_until(
            connection, lambda: not endpoint.is_closing, None, "the end of the connection"
        )
        decision = self.after_loss(monotonic())
        if isinstance(decision, TryAfter):
            if endpoint.is_over:
                connection.leave()
            else:
                self._draining.append(connection)
            with suppress(ConnectionLost):
                self.use(self._connect(decision))
        reconnector.check()
        return self.connection

    # --- waiting

    def wait_until(
        self,
        connection: BlockingConnection,
        is_reached: Callable[[], bool],
        deadline: float | None,
        what: str,
    ) -> None:
        """Move bytes until `is_reached()` is true, or the connection is over. Raises StreamTimeout
        at the deadline.
        """
        while not is_reached() and not connection.endpoint.is_over:
            if deadline is not None and monotonic() >= deadline:
                raise StreamTimeout(f"{what} did not come in time (timeout=)")
            self.step(connection, deadline)

    def step(self, connection: BlockingConnection, deadline: float | None) -> None:
        """Send what waits, wait for a peer until the deadline at most, and act on what has arrived.
        Returns at once if the connection is over.
        """
        served = [connection]
        if self._draining:
            self._leave_quiet()
            others = [self.connection, *self._draining]
            served += [each for each in others if each is not connection]
        step(served, deadline)

    # --- for streams

    def open_stream(
        self, subscribe_to: Callable[[Endpoint], None], timeout: float | None
    ) -> BlockingConnection:
        """Subscribe as soon as the connection is there and has room. Return the connection."""
        with self.guard:
            connection = self.current()
            self.wait_until(
                connection,
                lambda: connection.endpoint.has_room,
                deadline_of(timeout),
                "room to subscribe",
            )
            connection.attend(subscribe_to, connection.endpoint)
            connection.attend(connection.flush)
            return connection

    def take(
        self,
        connection: BlockingConnection,
        take: Callable[[], T | None],
        is_readable: Callable[[], bool],
        timeout: float | None,
    ) -> T | None:
        """Return what `take` returns. If that is None, wait until the stream is readable, and
        call `take` again.
        """
        with self.guard:
            taken = connection.attend(take)
            # Also after the second call: to take may request more elements.
            connection.attend(connection.flush)
            if taken is None and not is_readable():
                self.wait_until(connection, is_readable, deadline_of(timeout), "an element")
                taken = connection.attend(take)
                connection.attend(connection.flush)
            return taken

    def attend(
        self,
        connection: BlockingConnection,
        act: Callable[P, T],
        *arguments: P.args,
        **options: P.kwargs,
    ) -> T:
        """Call `act`, which changes the connection, and send what it has queued."""
        with self.guard:
            result = connection.attend(act, *arguments, **options)
            connection.attend(connection.flush)
            return result

    # --- for the block

    def leave(self) -> None:
        """Say goodbye and close; a further connection is not made."""
        with self.guard:
            self.stop()
            # The last one is the first that is left, and each of them is, also after an interrupt.
            with ExitStack() as leaving:
                for each in {*self._draining, self.connection}:
                    leaving.callback(each.leave)

    # --- inside

    def _leave_quiet(self) -> None:
        """Leave each server that drains if nothing runs on its connection. It may leave first."""
        for each in [*self._draining]:
            endpoint = each.endpoint
            if endpoint.is_over or endpoint.has_left:
                self._draining.remove(each)
                each.leave()
            elif each.is_quiet and not endpoint.is_closing:
                each.attend(endpoint.close)

    def _connect(self, decision: TryAfter | GiveUp) -> BlockingConnection:
        """Return a connection, after as many attempts as the policy permits.
        Raises the error of the last one.
        """
        while isinstance(decision, TryAfter):
            self._pause(decision.seconds)
            self.reconnector.on_attempt()
            try:
                return connect_once(self.settings)
            except ConnectionLost as error:
                decision = self.reconnector.on_lost(error, opened_at=None, now=monotonic())
        raise own_copy(decision.error)

    def _pause(self, seconds: float) -> None:
        """Wait, and serve the connections to servers that drain meanwhile."""
        ends = monotonic() + seconds
        while (left := ends - monotonic()) > 0:
            self._leave_quiet()
            if self._draining:
                step(self._draining, ends)
            else:
                time.sleep(left)


def deadline_of(seconds: float | None) -> float | None:
    """Return the time at which a wait of that length ends, None for a wait without an end."""
    return None if seconds is None else monotonic() + seconds
