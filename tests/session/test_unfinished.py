"""Elements that are under way in parts, and how long they have been."""

from penstock.api import ProtocolError, Role
from penstock.wire import rsio
from tests.session._pair import RawPeer, limited, reading


def test_an_element_that_is_left_unfinished_ends_its_stream_when_its_time_is_over() -> None:
    """The timer is told when to look again; what was finished in time is forgotten."""
    raw = RawPeer(Role.CLIENT, limits=limited(partial_age=5, idle_connection=1000)).greet()
    reader = reading(raw, 4)
    raw.say(rsio.OnNextPart(subscriber=0, element=0, data=b"x" * 64))
    assert raw.session.unfinished.tick(3.0) == 5.0
    raw.say(rsio.OnNextLastPart(subscriber=0, element=0, data=b"y"))
    assert raw.session.unfinished.tick(5.0) is None
    raw.say(rsio.OnNextPart(subscriber=0, element=1, data=b"x" * 64))
    assert raw.session.unfinished.tick(5.0) is None
    (end,) = reader.ends
    assert isinstance(end, ProtocolError)
    assert reader.elements == [b"x" * 64 + b"y"]
