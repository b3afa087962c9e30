"""A watcher is asked when it is due, and not before."""

from math import inf

from hypothesis import given
from hypothesis import strategies as st

from penstock.session._deadlines import Deadlines


class Noted:
    """A watcher that notes when it was asked, and says what it was told to say."""

    def __init__(self, *answers: float | None) -> None:
        self.due = inf
        self.asked: list[float] = []
        self.answers = list(answers)

    def look(self, now: float, /) -> float | None:
        self.asked.append(now)
        return self.answers.pop(0) if self.answers else None


def test_a_watcher_is_asked_at_its_time_and_at_the_one_that_it_returns() -> None:
    """`run` returns when it is due next."""
    deadlines, watcher = Deadlines(), Noted(7.0, None)
    deadlines.add(watcher, 5.0)
    assert [deadlines.run(now) for now in (0.0, 4.9, 5.0, 6.0, 8.0, 99.0)] == [
        *(5.0, 5.0, 7.0, 7.0, None, None),
    ]
    assert watcher.asked == [5.0, 8.0]


def test_the_owner_is_told_of_an_earlier_time_only() -> None:
    """A deadline that moves away costs nothing: the watcher says it when it is asked."""
    deadlines, one, two = Deadlines(), Noted(), Noted()
    told: list[float] = []
    deadlines.on_earlier = told.append
    deadlines.add(one, 5.0)
    deadlines.add(two, 9.0)
    for due in (6.0, 8.0, 3.0, 4.0):
        deadlines.hasten(two, due)
    assert told == [5.0, 3.0]
    deadlines.run(4.0)
    assert (one.asked, two.asked) == ([], [4.0])


def test_a_watcher_that_is_hastened_while_it_looks_keeps_the_earlier_time() -> None:
    """The time that it returns was computed before."""

    class Hastened(Noted):
        def look(self, now: float, /) -> float | None:
            super().look(now)
            deadlines.hasten(self, now + 1)
            return now + 5

    deadlines = Deadlines()
    deadlines.add(Hastened(), 0.0)
    assert deadlines.run(0.0) == 1.0


def test_a_watcher_that_was_removed_is_not_asked() -> None:
    """Others are."""
    deadlines, one, two = Deadlines(), Noted(), Noted()
    deadlines.open()
    deadlines.add(one)
    deadlines.add(two)
    deadlines.remove(one)
    assert deadlines.run(0.0) is None
    assert (one.asked, two.asked) == ([], [0.0])


def test_nothing_is_asked_after_the_end() -> None:
    """The owner is told at once, because the goodbye has another deadline."""
    deadlines, late = Deadlines(), Noted()

    class Closing(Noted):
        def look(self, now: float, /) -> float | None:
            deadlines.clear()
            return now

    told: list[float] = []
    deadlines.on_earlier = told.append
    deadlines.open()
    deadlines.add(Closing())
    deadlines.add(late)
    told.clear()
    assert deadlines.run(1.0) is None
    deadlines.add(Noted())
    deadlines.hasten(late, 0.0)
    assert told == [-inf]
    assert late.asked == []


class Input:
    """A watcher whose deadline moves away with each input, as that of a silence does."""

    def __init__(self, patience: int) -> None:
        self.due = inf
        self.patience = patience
        self.heard_at = 0.0
        self.found: list[float] = []

    def look(self, now: float, /) -> float | None:
        if now < self.heard_at + self.patience:
            return self.heard_at + self.patience
        self.found.append(now)
        return None


@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=5),
    st.lists(st.tuples(st.integers(1, 4), st.integers(0, 5)), max_size=60),
)
def test_watchers_find_the_same_as_if_all_were_asked_at_all_times(
    patiences: list[int], steps: list[tuple[int, int]]
) -> None:
    """Each finds its silence at the same time, and most of them are not asked meanwhile."""
    asked = [Input(patience) for patience in patiences]
    waiting, deadlines = [Input(patience) for patience in patiences], Deadlines()
    for watcher in waiting:
        deadlines.add(watcher, watcher.patience)
    now = 0
    for passing, heard in steps:
        for _ in range(passing):
            now += 1
            for watcher in asked:
                if not watcher.found:
                    watcher.look(now)
            deadlines.run(now)
        if heard < len(patiences):
            asked[heard].heard_at = waiting[heard].heard_at = now
    assert [watcher.found for watcher in waiting] == [watcher.found for watcher in asked]


def test_a_watcher_without_a_time_is_asked_when_the_connection_is_open() -> None:
    """One with a time is asked before that as well."""
    deadlines, timed, other = Deadlines(), Noted(), Noted()
    deadlines.add(timed, 1.0)
    deadlines.add(other)
    deadlines.run(2.0)
    assert (timed.asked, other.asked) == ([2.0], [])
    deadlines.open()
    late = Noted()
    deadlines.add(late)
    deadlines.run(3.0)
    assert (other.asked, late.asked) == ([3.0], [3.0])
