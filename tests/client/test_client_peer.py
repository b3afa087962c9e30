"""The connection of a client is replaced. The shell that opens it does not matter."""

import pytest

from penstock.api import ConnectionLost, Rejected
from penstock.client import ClientPeer, ConnectionKeeper, Endpoint, TryAfter
from penstock.spi import Reconnect, ReconnectEvent, build_registry, hookimpl
from tests.client._settings import HELLO, endpoint, settings

REFUSAL = b"\x03\x04auth"


class Opened:
    """Stands for a transport connection."""

    def __init__(self, made: Endpoint) -> None:
        self.endpoint = made


class Seen:
    """A plugin that keeps the stages of a client that reconnects."""

    def __init__(self) -> None:
        self.stages: list[str] = []

    @hookimpl
    def penstock_reconnect(self, event: ReconnectEvent) -> None:
        self.stages.append(event.stage.value)


def keeper(*, reconnect: Reconnect | None = None, seen: Seen) -> ConnectionKeeper[Opened]:
    registry = build_registry(plugins=[seen])
    return ConnectionKeeper(settings(reconnect=reconnect, registry=registry))


@pytest.mark.parametrize("is_early", [False, True])
def test_observers_hear_of_a_connection_that_has_opened_again(*, is_early: bool) -> None:
    """Once, also if the peer has said hello before the connection is used."""
    seen = Seen()
    kept = keeper(reconnect=Reconnect(), seen=seen)
    for number in range(2):
        made = endpoint()
        if is_early:
            made.receive(HELLO, 0.0)
        kept.use(Opened(made))
        if not is_early:
            made.receive(HELLO, 0.0)
        assert seen.stages == ["lost", "retrying", "back"][: 3 * number]
        if number == 0:
            made.end_of_input()
            assert isinstance(kept.after_loss(1.0), TryAfter)


def test_a_peer_is_that_of_the_connection_of_this_time() -> None:
    """A program has one peer for all connections."""
    kept = keeper(reconnect=Reconnect(), seen=Seen())
    lost, made = endpoint(), endpoint()
    lost.receive(HELLO, 1.0)
    made.receive(HELLO, 2.0)
    kept.use(Opened(lost))
    peer = ClientPeer(kept)
    lost.end_of_input()
    assert (peer.is_connected, peer.opened_at, repr(peer)) == (
        False,
        1.0,
        f"<peer {peer.identity}, gone>",
    )
    kept.use(Opened(made))
    assert (peer.is_connected, peer.opened_at) == (True, 2.0)
    assert repr(peer) == f"<peer {peer.identity}>"


def test_what_waits_for_a_connection_fails_when_the_block_is_left() -> None:
    """No further connection is made."""
    kept = keeper(reconnect=Reconnect(), seen=Seen())
    kept.use(Opened(endpoint()))
    kept.endpoint.end_of_input()
    kept.after_loss(1.0)
    woken: list[Exception | None] = []
    kept.reconnector.when_connected(lambda: woken.append(kept.reconnector.failure()))
    assert woken == []
    kept.stop()
    assert [type(error) for error in woken] == [ConnectionLost]


def test_a_refusal_is_raised_if_the_peer_has_ended_the_connection() -> None:
    """And not if it refuses after this side has left."""
    for is_ended in (True, False):
        kept = keeper(seen=Seen())
        kept.use(Opened(endpoint()))
        if is_ended:
            kept.endpoint.receive(REFUSAL, 0.0)
        kept.stop()
        kept.endpoint.close()
        if not is_ended:
            kept.endpoint.receive(REFUSAL, 0.0)
            kept.raise_refusal()
            continue
        with pytest.raises(Rejected):
            kept.raise_refusal()
