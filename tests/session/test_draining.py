"""The drain of one connection, without an extension: its end, and the peers that are told."""

from penstock.api import Role
from penstock.session._draining import DrainState
from tests.session._pair import RawPeer


def state() -> tuple[DrainState, list[float]]:
    told: list[float] = []
    drain = RawPeer().handshake().session.streams.drain
    drain.add(told.append)
    return drain, told


def test_the_earlier_end_holds() -> None:
    """A later one is not announced either."""
    drain, told = state()
    drain.begin(10.0, 30.0)
    drain.begin(12.0, 50.0)
    drain.begin(14.0, 15.0)
    assert (drain.until, told) == (15.0, [20.0, 18.0, 1.0])


def test_an_extension_that_comes_later_tells_the_peer_at_once() -> None:
    """With the time that is left, and never with less than none."""
    drain, _ = state()
    drain.begin(10.0, 9.0)
    late: list[float] = []
    drain.add(late.append)
    assert late == [0.0]


def test_a_connection_that_closes_does_not_drain() -> None:
    """Its goodbye has said more."""
    raw = RawPeer(Role.SERVER).handshake()
    raw.session.close("shutdown")
    raw.session.streams.drain.begin(1.0, 2.0)
    assert raw.session.streams.drain.until is None


def test_a_peer_that_drains_is_noted_with_and_without_a_listener() -> None:
    """The listener is called once, and not after the end."""
    drain, _ = state()
    drain.note_peer()
    assert drain.is_peer_draining
    drain, told = state()
    calls: list[None] = []
    drain.on_peer_draining = lambda: calls.append(None)
    drain.note_peer()
    drain.note_peer()
    drain.release()
    assert (calls, drain.on_peer_draining, drain.announcers, told) == ([None], None, (), [])
