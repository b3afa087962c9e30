"""A connection without a stream is in use if its traffic has grown, or if a keepalive is active
and a side of it publishes.
"""

from types import SimpleNamespace
from typing import Any

import pytest

from penstock.api import Role
from penstock.extensions import Keepalive
from penstock.protocols import rsio
from penstock.session._connection_use import ConnectionUse
from penstock.session._request_ratio import RequestRatio
from tests.session._pair import Pair, RawPeer, ScriptedPublisher, subscribe_to


def use_of(role: Role) -> ConnectionUse:
    return ConnectionUse(role, RequestRatio())


def test_streams_of_both_sides_and_messages_are_traffic() -> None:
    """Each of the three kinds makes the number grow."""
    requests = RequestRatio()
    use = ConnectionUse(Role.SERVER, requests)
    seen = [use.traffic]
    requests.streams += 1
    seen.append(use.traffic)
    use.asked += 1
    seen.append(use.traffic)
    use.messages += 1
    seen.append(use.traffic)
    assert seen == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("role", "publishes", "asked", "keeps"),
    [
        (Role.SERVER, False, 0, False),
        (Role.SERVER, True, 0, True),
        (Role.SERVER, False, 1, True),
        (Role.CLIENT, False, 0, True),
    ],
)
def test_a_side_that_publishes_keeps_the_connection_if_the_keepalive_is_active(
    role: Role, publishes: bool, asked: int, keeps: bool
) -> None:
    """A server is taken to publish; a client has published if it was asked for something.
    Without a keepalive nothing keeps it.
    """
    use = use_of(role)
    use.publishes = lambda: publishes
    use.asked = asked
    assert not use.keeps_open
    keepalive: Any = SimpleNamespace()
    use.keepalive = keepalive
    assert use.keeps_open == keeps


def test_subscribes_are_counted_on_both_sides_and_pings_on_neither() -> None:
    """The keepalive shows that a peer lives, and not that the connection is needed."""
    pair = Pair(extensions=[Keepalive()])
    pair.settle()
    uses = pair.client.session.streams.use, pair.server.session.streams.use
    assert all(use.keepalive is not None for use in uses)
    for now in (30.0, 40.0, 60.0):
        pair.now = now
        pair.client.session.tick(now)
        pair.server.session.tick(now)
        pair.settle()
    assert [use.traffic for use in uses] == [0, 0]


def test_each_subscribe_is_traffic() -> None:
    """That of this side, and that of the peer."""
    raw = RawPeer().handshake()
    raw.delegate.publishers["s"] = ScriptedPublisher()
    raw.send(rsio.Subscribe(publisher="s", subscriber=0))
    assert raw.session.streams.use.traffic == 1
    client = RawPeer(Role.CLIENT).handshake()
    subscribe_to(client, 2)
    assert client.session.streams.use.traffic == 1
