"""What was fetched is kept within bounds."""

from penstock_kafka._fetched import ELEMENT_BYTES, Fetched, Run


def _run(start: int, count: int, size: int = 100) -> Run:
    return Run.of(start, [b"x" * size] * count)


def test_a_run_is_found_by_each_of_its_positions() -> None:
    """And by no other one, nor in another partition."""
    fetched = Fetched()
    fetched.add(0, _run(10, 5))
    fetched.add(0, _run(20, 5))
    found = [fetched.find(0, position) for position in (9, 10, 14, 15, 20, 25)]
    assert [None if run is None else run.start for run in found] == [None, 10, 10, None, 20, None]
    assert fetched.find(1, 10) is None


def test_the_run_that_was_read_longest_ago_goes_first() -> None:
    """The bytes of all runs stay below the bound, but for one that is larger."""
    size = 100 + ELEMENT_BYTES
    fetched = Fetched(3 * size)
    for start in range(3):
        fetched.add(0, _run(start, 1))
    fetched.find(0, 0)
    fetched.add(0, _run(3, 1))
    assert [fetched.find(0, each) is not None for each in range(4)] == [True, False, True, True]
    assert fetched.held == 3 * size
    fetched.add(0, _run(4, 9))
    assert (fetched.find(0, 12) is not None, fetched.held) == (True, 9 * size)
    fetched.clear()
    assert (fetched.find(0, 12), fetched.held) == (None, 0)


def test_a_run_at_the_same_place_takes_the_place_of_the_first() -> None:
    """It is counted once."""
    fetched = Fetched()
    fetched.add(0, _run(0, 1))
    fetched.add(0, _run(0, 2))
    assert fetched.held == 2 * (100 + ELEMENT_BYTES)
    assert fetched.find(0, 1) is not None


def test_one_tail_of_a_partition_is_kept() -> None:
    """The newest elements replace those before, and old runs go for them."""
    size = 100 + ELEMENT_BYTES
    fetched = Fetched(3 * size)
    fetched.add(0, _run(0, 2))
    for start in (10, 11):
        fetched.keep_tail(0, _run(start, 1))
        assert fetched.held == 3 * size
    assert (fetched.find(0, 10), fetched.find(0, 11) is not None) == (None, True)
    fetched.keep_tail(0, _run(12, 3))
    assert (fetched.find(0, 0), fetched.held) == (None, 3 * size)
