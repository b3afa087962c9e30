"""A session that was released is in no circle of references, and can be asked as before."""

import gc
import weakref

import pytest

from penstock.api import ConnectionLost
from penstock.session import ConnectionState, release_session
from tests.session._pair import RawPeer, RecordingSubscriber


@pytest.mark.parametrize("is_over", [True, False])
def test_a_released_session_is_freed_when_it_is_dropped(is_over: bool) -> None:
    """The peer may not have answered its goodbye."""
    raw = RawPeer()
    raw.session.close("done")
    if is_over:
        raw.session.end_of_input()
    session = raw.session
    gc.collect()
    gc.disable()
    try:
        release_session(session)
        assert session.state is ConnectionState.LOST
        parts = [weakref.ref(session), weakref.ref(session.channel.dialect)]
        del session, raw
        assert [part() for part in parts] == [None, None]
    finally:
        gc.enable()


def test_a_released_session_refuses_streams_with_the_reason_of_its_end() -> None:
    """As it does before."""
    raw = RawPeer()
    raw.session.end_of_input(ConnectionLost("the cable"))
    release_session(raw.session)
    subscriber = RecordingSubscriber(1)
    raw.session.subscribe("s", subscriber)
    assert "the cable" in str(subscriber.ends)
    raw.session.close("again")
    assert raw.session.tick(1000.0) is None
    assert not raw.session.receive(b"late", 1000.0)
