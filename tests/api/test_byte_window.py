"""A window of bytes: a few elements first, then as many as fit by their size,
beside the other streams of a connection.
"""

from penstock.api import ByteWindow, SharedBytes

KIB, MIB = 1 << 10, 1 << 20


def window_of(most: int = 16 * MIB) -> ByteWindow:
    return ByteWindow(most, 4 * MIB)


def test_a_stream_begins_with_a_few_elements() -> None:
    """8, or the demand if it is less;
    one if twice the window would not hold 8 of the largest elements.
    """
    assert window_of().demand(256, 0, 0) == 8
    assert window_of().demand(3, 0, 0) == 3
    assert window_of(6 * MIB).demand(256, 0, 0) == 3
    assert window_of(MIB).demand(256, 0, 0) == 1


def test_small_elements_are_asked_for_to_the_full() -> None:
    """Also elements without a byte."""
    window = window_of()
    window.received += 8 * 64
    assert window.demand(256, 8, 0) == 256
    assert window_of().demand(256, 8, 0) == 256


def test_large_elements_are_asked_for_as_the_window_holds_them() -> None:
    """Four of 4 MiB; an element larger than the window is asked for alone."""
    window = window_of()
    window.received += 8 * 4 * MIB
    assert window.demand(256, 8, 8) == 4
    small = window_of(MIB)
    small.received += 4 * MIB
    assert small.demand(256, 1, 0) == 1


def test_the_size_grows_at_once_and_shrinks_slowly() -> None:
    """After 100 small elements one of 4 MiB matters at once, and for the next looks less
    and less.
    """
    window = window_of()
    window.received += 100 * 64
    assert window.demand(256, 100, 0) == 256
    window.received += 4 * MIB
    assert window.demand(256, 101, 0) == 4
    limits = []
    for taken in range(102, 122):
        window.received += 64
        limits.append(window.demand(256, taken, 0))
    assert limits == sorted(limits)
    assert limits[0] == 5
    assert limits[-1] == 256


def test_unread_bytes_are_those_that_the_reader_has_not_taken() -> None:
    """All that was received until the reader looks; then by the number of elements that are
    left; none when all are taken.
    """
    window = window_of()
    window.received += 8 * MIB
    assert window.unread == 8 * MIB
    window.demand(256, 8, 4)
    assert window.unread == 4 * MIB
    window.received += MIB
    assert window.unread == 5 * MIB
    window.demand(256, 9, 0)
    assert window.unread == 0


def test_the_windows_of_a_connection_share_its_budget() -> None:
    """Four fill it. A fifth gets an equal share, and so do the others when they ask again."""
    shared = SharedBytes(64 * MIB)
    windows = [window_of() for _ in range(5)]
    for window in windows:
        shared.add(window, window)
        window.received += 8 * MIB
        window.demand(256, 8, 0)
    assert shared.promised <= 80 * MIB
    assert [window.demand(256, 8, 0) for window in windows] == [12, 12, 12, 16, 12]
    assert shared.promised <= 64 * MIB
    for window in windows[1:]:
        shared.remove(window, window)
    assert windows[0].demand(256, 8, 0) == 16


def test_small_streams_beside_each_other_are_not_slowed() -> None:
    """A thousand streams of small elements, each with its whole demand."""
    shared = SharedBytes(64 * MIB)
    for _ in range(1000):
        window = window_of()
        shared.add(window, window)
        window.received += 8 * 200
        assert window.demand(256, 8, 0) == 256


def test_the_stream_that_holds_most_is_found() -> None:
    """Only when all together hold more than the budget."""
    shared, first, second = SharedBytes(10 * KIB), window_of(), window_of()
    shared.add(first, "first")
    shared.add(second, "second")
    first.received += 4 * KIB
    second.received += 6 * KIB
    shared.fed = 100
    assert shared.largest() is None
    assert shared.fed == 0
    first.received += 3 * KIB
    assert shared.largest() == ("first", 13 * KIB)
    shared.remove(first, "second")  # another stream has that window by now
    assert len(shared.windows) == 2
