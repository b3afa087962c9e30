"""The counts of a session: since when its streams have not moved. The rest is tested where the
statistics of a connection are.
"""

from penstock.api import UNBOUNDED
from penstock.session._session_counts import OldestStream, SessionCounts, StalledCounts, StreamLook
from tests.session._pair import Pair, ScriptedPublisher


def test_a_stall_ends_with_an_element_with_demand_and_with_the_stream() -> None:
    """A stream that begins under an id that was used before has a new time."""
    watch = OldestStream()

    def look(now: float, *streams: StreamLook) -> tuple[float | None, float | None]:
        found = watch.look(now, streams)
        return tuple(None if each is None else each[1] for each in found)  # type: ignore[return-value]  # two of them

    assert look(0, StreamLook(1, 5, 10, 0.0)) == (None, 0)
    assert look(4, StreamLook(1, 5, 10, 0.0)) == (None, 4)
    assert look(5, StreamLook(1, 4, 11, 0.0)) == (None, 0)
    assert look(7, StreamLook(1, 0, 11, 0.0)) == (0, None)
    assert look(9, StreamLook(1, 0, 11, 0.0), StreamLook(2, 3, 0, 8.0)) == (2, 1)
    assert look(11, StreamLook(1, 0, 11, 10.0)) == (0, None)
    assert look(12) == (None, None)
    # Not seen at the last look: nothing is known of the time before.
    assert look(13, StreamLook(1, 0, 11, 10.0)) == (0, None)


def pair_with_streams(*demands: int) -> tuple[Pair, list[ScriptedPublisher]]:
    """Return a pair with a stream for each demand, and their publishers, which are named s0,
    s1 and so on.
    """
    pair = Pair()
    sources = [ScriptedPublisher() for _ in demands]
    for number, (source, demand) in enumerate(zip(sources, demands, strict=True)):
        pair.server.publishers[f"s{number}"] = source
        pair.subscribe(f"s{number}", demand)
    pair.settle()
    return pair, sources


def test_both_sides_count_the_same_streams() -> None:
    """Demand without a bound is counted apart from the other demand.
    Streams that have ended are counted as opened.
    """
    pair, sources = pair_with_streams(5, UNBOUNDED, 0, 4)
    sources[0].emit(b"a", b"b")
    sources[1].emit(b"c")
    sources[3].complete()
    pair.settle()
    client, server = SessionCounts(pair.client.session), SessionCounts(pair.server.session)
    for counts in (client.receiving(0.0), server.sending(0.0)):
        assert (
            counts.streams,
            counts.opened,
            counts.demand,
            counts.unbounded,
            counts.elements,
        ) == (3, 4, 3, 1, 3)
    for counts in (client.sending(0.0), server.receiving(0.0)):
        assert (
            counts.streams,
            counts.opened,
            counts.demand,
            counts.unbounded,
            counts.elements,
        ) == (0, 0, 0, 0, 0)
        assert (counts.without_demand, counts.without_elements) == (None, None)


def test_the_publisher_that_does_not_move_is_named() -> None:
    """A stream without a single element has stood since it began.
    An element that the writer has not taken is a movement.
    """
    pair, sources = pair_with_streams(5, UNBOUNDED, 0)
    sources[0].emit(b"a", b"b")
    sources[1].emit(b"c")
    counts = SessionCounts(pair.server.session)
    first = counts.sending(10.0)
    assert first.without_demand == StalledCounts(2, "s2", 0, 10.0)
    assert first.without_elements == StalledCounts(0, "s0", 3, 0.0)
    assert first.elements == 3
    sources[0].emit(b"d")
    second = counts.sending(14.0)
    assert second.without_elements == StalledCounts(1, "s1", UNBOUNDED, 4.0)
    assert second.elements == 4
    pair.settle()
    assert counts.sending(15.0).without_elements == StalledCounts(1, "s1", UNBOUNDED, 5.0)


def test_a_received_stream_has_stood_since_the_first_look() -> None:
    """A subscriber does not name the publisher. A cancelled stream is not looked at."""
    pair, sources = pair_with_streams(5, 0)
    gone = pair.subscribe("s1", 7)
    gone.cancel()
    counts = SessionCounts(pair.client.session)
    counts.receiving(3.0)
    sources[0].emit(b"a")
    pair.settle()
    looks = counts.receiving(8.0)
    assert looks.without_demand == StalledCounts(1, "", 0, 5.0)
    assert looks.without_elements == StalledCounts(0, "", 4, 0.0)
    assert looks.streams == 2
