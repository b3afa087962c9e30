"""The counts of a session: since when its streams have not moved. The rest is tested where the statistics of a connection are."""

from penstock.session._session_counts import StallWatch, StreamLook


def test_a_stall_ends_with_an_element_with_demand_and_with_the_stream() -> None:
    """A stream that begins under an id that was used before has a time of its own."""
    watch = StallWatch()

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
