"""A stream that a draining server has refused is opened again:
one on_subscribe, and the whole demand.
"""

from types import SimpleNamespace
from typing import Any

from penstock.api import ConnectionLost, Rejected, Subscriber
from penstock.client import was_moved
from penstock.runtime.client._reconnecting_peer import ReopenAfterDrain
from penstock.testing import ManualSubscriber

REFUSED = Rejected("draining", processed=False, temporary=True)


class Made:
    """A source of one connection, which the test drives."""

    def __init__(self) -> None:
        self.subscriber: Subscriber[Any] | None = None
        self.requests: list[int] = []
        self.cancels = 0

    def attach(self, subscriber: Subscriber[Any], scope: Any, reader: Any) -> None:
        self.subscriber = subscriber
        subscriber.on_subscribe(self)

    def request(self, n: int, /) -> None:
        self.requests.append(n)

    def cancel(self, /) -> None:
        self.cancels += 1


class Peer:
    """A peer whose connections the test replaces."""

    def __init__(self, *, drains: bool = True) -> None:
        self.connection: Any = SimpleNamespace(
            session=SimpleNamespace(
                streams=SimpleNamespace(drain=SimpleNamespace(is_peer_draining=drains))
            )
        )
        self.waiting: list[Any] = []

    def current(self) -> Any:
        return self.connection

    def when_connected(self, act: Any, /) -> None:
        self.waiting.append(act)


def opened(*, drains: bool = True) -> tuple[Peer, list[Made], ManualSubscriber]:
    peer, made, subscriber = Peer(drains=drains), list[Made](), ManualSubscriber()

    def make() -> Made:
        made.append(Made())
        return made[-1]

    stands_for_one: Any = peer
    ReopenAfterDrain(stands_for_one, make).attach(subscriber)
    return peer, made, subscriber


def refuse(made: Made, error: Exception = REFUSED) -> None:
    assert made.subscriber is not None
    made.subscriber.on_error(error)


def test_a_stream_moves_with_all_of_its_demand() -> None:
    """Demand that was requested between two connections is also requested on the next one."""
    peer, made, subscriber = opened()
    subscriber.request(3)
    refuse(made[0])
    subscriber.request(4)
    peer.waiting.pop()(None)
    assert (made[0].requests, made[1].requests) == ([3], [7])
    assert made[1].subscriber is not None
    made[1].subscriber.on_next("x")
    made[1].subscriber.on_complete()
    assert subscriber.elements == ["x"]
    assert subscriber.ended


def test_a_stream_that_is_cancelled_meanwhile_is_not_opened() -> None:
    """And one that is cancelled later is cancelled at the next connection."""
    peer, made, subscriber = opened()
    refuse(made[0])
    subscriber.cancel()
    peer.waiting.pop()(None)
    assert len(made) == 1


def test_without_a_next_connection_the_stream_ends_with_its_error() -> None:
    """The policy has given up."""
    peer, made, subscriber = opened()
    refuse(made[0])
    lost = ConnectionLost("no further attempt")
    peer.waiting.pop()(lost)
    assert subscriber.error is lost


def test_other_errors_end_the_stream() -> None:
    """A refusal by a server that does not drain, and every failure."""
    for drains, error in ((False, REFUSED), (True, Rejected("no")), (True, ConnectionLost("gone"))):
        peer, made, subscriber = opened(drains=drains)
        refuse(made[0], error)
        assert subscriber.error is error
        assert peer.waiting == []
        assert not was_moved(error, peer.connection.session)
