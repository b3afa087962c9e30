"""One stream with more elements than a demand of RSocket can count: two sessions, and no network.

The elements have no bytes. What is exercised is the demand: REQUEST_N with at most 2^31-1, granted
in parts, through every sum that a counter of 31 or 32 bits would lose.
"""

from collections.abc import Sequence
from typing import Any, Final

from penstock_rsocket import RsocketDialect

from penstock.api import Limits, Role, Subscriber, Subscription
from penstock.session import Session

BLOCK: Final = [b""] * 1000
UNBOUNDED: Final = 2**63 - 1


class Blocks:
    """A publisher that gives blocks of elements as they are requested, and then completes."""

    def __init__(self, left: int) -> None:
        self._left = left
        self._wanted = 0
        self._subscriber: Any = None

    def attach(self, subscriber: Any) -> None:
        """Give the elements to a subscriber."""
        self._subscriber = subscriber
        subscriber.on_subscribe(self)

    def request(self, n: int) -> None:
        """Note demand. `give` answers it."""
        self._wanted += n

    def cancel(self) -> None:
        """Stop."""
        self._left = 0

    def give(self) -> None:
        """Give what was requested, a block at most."""
        count = min(self._wanted, self._left, len(BLOCK))
        self._wanted -= count
        self._left -= count
        if count:
            self._subscriber.on_next_many(BLOCK if count == len(BLOCK) else BLOCK[:count])
        if not self._left and self._subscriber is not None:
            subscriber, self._subscriber = self._subscriber, None
            subscriber.on_complete()


class Server:
    """Serves the publisher."""

    session: Session

    def __init__(self, source: Blocks) -> None:
        self.source = source

    def on_introduction(self, _data: bytes) -> None:
        """Let the client in."""
        self.session.admit()

    def serve(self, stream: Any) -> None:
        """Accept the stream."""
        stream.accept()

    def attach(self, stream: Any) -> None:
        """Let the publisher begin."""
        self.source.attach(stream)

    def __getattr__(self, name: str) -> Any:
        return lambda *_: None


class Count(Subscriber[bytes]):
    """Counts elements."""

    got = 0
    end = "none"

    def on_subscribe(self, subscription: Subscription, /) -> None:
        """Request without a bound."""
        subscription.request(UNBOUNDED)

    def on_next(self, _element: bytes, /) -> None:
        """Count one."""
        self.got += 1

    def on_next_many(self, elements: Sequence[bytes], /) -> None:
        """Count several."""
        self.got += len(elements)

    def on_error(self, error: BaseException, /) -> None:
        """Note the end."""
        self.end = str(error)

    def on_complete(self, /) -> None:
        """Note the end."""
        self.end = "complete"


def count_through(elements: int) -> int:
    """Send so many elements through one stream, and return how many came. Raises AssertionError if
    the stream ended otherwise.
    """
    source = Blocks(elements)
    serving = Server(source)
    sides = []
    for delegate, role in ((serving, Role.SERVER), (Server(Blocks(0)), Role.CLIENT)):
        delegate.session = Session(
            delegate,  # as much of it as the session calls
            RsocketDialect,
            role=role,
            limits=Limits(),
            random=lambda: 0.5,
        )
        delegate.session.start(0.0)
        sides.append(delegate.session)
    server, client = sides
    count = Count()
    server.receive(bytes(client.take()), 0.0)
    client.receive(bytes(server.take()), 0.0)
    client.subscribe("elements", count)
    while count.end == "none":
        if data := client.take():
            server.receive(bytes(data), 0.0)
        source.give()
        if data := server.take():
            client.receive(bytes(data), 0.0)
    assert count.end == "complete", count.end
    assert count.got == elements, count.got
    return count.got
