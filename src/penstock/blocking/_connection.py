"""One transport connection with its endpoint: it moves bytes between them while the program waits.

Rules of this file:

* Nothing runs between two calls of the program: no thread, no signal. Bytes that have arrived wait
  in the socket, bounded by the demand.
* An interrupt (Ctrl-C) that arrives while the connection waits leaves it usable. One that arrives
  in any other place may have cut a message in two, so the connection is then closed without a
  goodbye.
"""

from collections.abc import Callable, Sequence
from time import monotonic
from typing import ParamSpec, TypeVar

from penstock.api import PenstockError
from penstock.blocking._wire import Awaited, Wire, open_wire, wait_for_one
from penstock.client import Endpoint, EndpointSettings, late
from penstock.spi import LiveStream, PeerStatistics

T = TypeVar("T")
P = ParamSpec("P")


class BlockingConnection:
    """One connection."""

    def __init__(self, settings: EndpointSettings) -> None:
        """Connect. Raises ConnectionLost if no server answers."""
        self._wire: Wire = open_wire(settings)
        try:
            self.endpoint: Endpoint = Endpoint(
                settings, self._wire.peer, monotonic(), agreed=self._wire.agreed
            )
        except PenstockError:
            self._wire.end(in_good_order=False)  # nothing else knows of it
            raise
        self._unsent = memoryview(b"")
        self._sent = 0
        self._is_cut = False  # an interrupt came while a message was handled

    def attend(self, act: Callable[P, T], *arguments: P.args, **options: P.kwargs) -> T:
        """Call `act`, which changes the connection.
        After an interrupt inside it the connection is not used any more.
        """
        self._is_cut = True
        try:
            result = act(*arguments, **options)
        # Only an interrupt may have cut the act in two, and that is not an Exception.
        # So the connection stays usable.
        except Exception:
            self._is_cut = False
            raise
        self._is_cut = False
        return result

    @property
    def is_quiet(self) -> bool:
        """Nothing runs, and the system has taken every byte."""
        return self.endpoint.is_quiet and not self._unsent

    @property
    def awaited(self) -> Awaited:
        """The events that this connection waits for: input, and room for unsent bytes."""
        return self._wire, bool(self._unsent)

    def flush(self) -> None:
        """Send what waits, as far as the system takes it."""
        endpoint = self.endpoint
        try:
            while self._unsent or endpoint.has_output:
                if not self._unsent:
                    self._unsent = memoryview(endpoint.take())
                sent = self._wire.send(self._unsent)
                self._sent += sent
                self._unsent = self._unsent[sent:]
                if not sent:
                    break
        except OSError as error:
            self._unsent = memoryview(b"")
            endpoint.end_of_input(error)

    def statistics(self) -> PeerStatistics:
        """Return the counts of the connection, and the bytes that it holds now."""
        return self.endpoint.statistics(monotonic(), unsent=len(self._unsent))

    def streams(self) -> list[LiveStream]:
        """Return a record for each stream and request that is open now."""
        return self.endpoint.streams(monotonic(), unsent=len(self._unsent))

    def leave(self) -> None:
        """Say goodbye, wait for the answer as long as `Limits.goodbye_timeout` allows,
        and close the socket.
        """
        is_orderly = False
        try:
            if not self._is_cut:
                self.attend(self.endpoint.close)
                while not self.endpoint.is_over and not self.endpoint.has_left:
                    step([self], None)
                self.attend(self.flush)  # the answer to a goodbye of the peer
                is_orderly = self.endpoint.has_parted
        finally:
            # It is closed also if an interrupt ends the wait.
            self._wire.end(in_good_order=is_orderly)
            self._unsent = memoryview(b"")
            self.endpoint.release()

    # --- for `step`

    def work(self) -> float | None:
        """Do what is due, let publishers run, and send. Return when something is due."""
        endpoint = self.endpoint
        due = endpoint.tick(monotonic())
        if endpoint.has_work:
            endpoint.run_publishers(monotonic)
            due = endpoint.tick(monotonic())
        self.flush()
        stalled = endpoint.check_stall(self._sent, len(self._unsent), monotonic())
        return due if stalled is None else stalled if due is None else min(due, stalled)

    def receive(self) -> None:
        """Act on what has arrived."""
        try:
            data = self._wire.receive()
        except OSError as error:
            self.endpoint.end_of_input(error)
            return
        if data:
            self.endpoint.receive(data, monotonic())
        elif data is not None:
            self.endpoint.end_of_input()
        self.flush()


def step(connections: Sequence[BlockingConnection], deadline: float | None) -> None:
    """Send what waits, wait for one of the peers until the deadline at most, and act on what has
    arrived. Returns at once if the first of the connections is over.
    """
    times = [] if deadline is None else [deadline]
    for each in connections:
        due = each.attend(each.work)
        if due is not None:
            times.append(due)
    if connections[0].endpoint.is_over:
        return
    open_ones = [each for each in connections if not each.endpoint.is_over]
    seconds = max(0.0, min(times) - monotonic()) if times else None
    if any(each.endpoint.has_work for each in open_ones):
        seconds = 0.0
    wait_for_one([each.awaited for each in open_ones], seconds)
    for each in open_ones:
        each.attend(each.receive)


def connect_once(settings: EndpointSettings) -> BlockingConnection:
    """Return a new connection. Raises ConnectionLost if no server answers."""
    try:
        return BlockingConnection(settings)
    except TimeoutError:
        raise late(settings) from None
