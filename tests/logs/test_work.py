"""The state of a partition, and the elements that a piece of work brings."""

from penstock.logs._work import Acknowledge, Append, PartitionState, Publish, works_appends


def test_a_state_changes_by_what_was_appended_and_dropped() -> None:
    """Each change is a new value."""
    empty = PartitionState()
    assert empty.appended(5, 50).dropped(2, 20) == PartitionState(earliest=2, latest=5, size=30)
    assert empty == PartitionState()


def test_the_floor_is_where_the_last_two_acknowledged_ranges_begin() -> None:
    """A position that is not beyond the last acknowledged one changes nothing."""
    state, floors = PartitionState(), []
    for position in (3, 3, 7, 5, 9, 12):
        state = state.with_acknowledged(position)
        floors.append(state.floor)
    assert floors == [0, 0, 0, 0, 3, 7]


def test_only_appends_and_publishes_bring_elements() -> None:
    """An acknowledgement brings none."""
    append = Append(0, (b"x",), 1)
    assert works_appends(append) == (append,)
    assert works_appends(Publish("id", (append, append))) == (append, append)
    assert works_appends(Acknowledge({0: 5})) == ()
