"""`HoldUpWatch`: the subscribers that hold up the others fail after their bound, and only those."""

from math import inf

import pytest
import trio
import trio.testing

from penstock.api import PublisherStopped, SlowSubscriber
from penstock.core import Scope
from penstock.streams.ops._hold_up_watch import HoldUpWatch


class WatchedOwner:
    """Owns a watch, and notes when each subscriber has failed."""

    def __init__(self, nursery: trio.Nursery, asked: float | None = None) -> None:
        self.failed: list[tuple[str, float]] = []
        self.errors: list[SlowSubscriber] = []
        self.stopped: list[BaseException] = []
        self.watch: HoldUpWatch[str] = HoldUpWatch("test", asked, self._fail)
        self.watch.begin(Scope(nursery), self.stopped.append)

    def _fail(self, subscriber: str, error: SlowSubscriber) -> None:
        self.failed.append((subscriber, trio.current_time()))
        self.errors.append(error)
        self.watch.remove(subscriber)


async def test_a_subscriber_fails_after_its_own_bound(
    nursery: trio.Nursery, autojump_clock
) -> None:
    """Each has the bound of its scope; one without a bound never fails."""
    owner = WatchedOwner(nursery)
    for name, bound in (("late", 9), ("early", 4), ("local", inf)):
        owner.watch.add(name, bound)
    owner.watch.update(["late", "early", "local"])
    await trio.sleep(100)
    assert owner.failed == [("early", 4), ("late", 9)]
    assert [(error.limit, error.value) for error in owner.errors] == [
        ("max_hold_up", 4),
        ("max_hold_up", 9),
    ]
    owner.watch.stop()


async def test_the_bound_of_the_operator_is_that_of_each_subscriber(
    nursery: trio.Nursery, autojump_clock
) -> None:
    """Also of those inside the process."""
    owner = WatchedOwner(nursery, asked=3)
    owner.watch.add("local", inf)
    owner.watch.update(["local"])
    await trio.sleep(100)
    assert owner.failed == [("local", 3)]
    owner.watch.stop()


async def test_a_request_begins_the_bound_anew(nursery: trio.Nursery, autojump_clock) -> None:
    """A slow subscriber is within its bound, as long as it requests something."""
    owner = WatchedOwner(nursery, asked=3)
    owner.watch.add("slow", inf)
    for _ in range(5):
        owner.watch.update(["slow"])
        await trio.sleep(2)
        owner.watch.note_request("slow")
    owner.watch.update(["slow"])
    assert not owner.failed
    await trio.sleep(100)
    assert owner.failed == [("slow", 13)]
    owner.watch.stop()


async def test_a_subscriber_that_holds_up_nothing_any_more_does_not_fail(
    nursery: trio.Nursery, autojump_clock
) -> None:
    """The others may have stopped to want elements."""
    owner = WatchedOwner(nursery, asked=3)
    owner.watch.add("slow", inf)
    owner.watch.update(["slow"])
    await trio.sleep(2)
    owner.watch.update([])
    await trio.sleep(100)
    assert not owner.failed
    owner.watch.stop()


async def test_the_failure_of_one_may_save_another(nursery: trio.Nursery, autojump_clock) -> None:
    """Both are due at the same time. When the first has failed, the second holds up nothing."""
    owner = WatchedOwner(nursery, asked=3)
    fail = owner.watch._fail
    owner.watch._fail = lambda name, error: (fail(name, error), owner.watch.update([]))
    for name in ("one", "two"):
        owner.watch.add(name, inf)
    owner.watch.update(["one", "two"])
    await trio.sleep(100)
    assert owner.failed == [("one", 3)]
    owner.watch.stop()


async def test_without_a_bound_no_task_is_started(nursery: trio.Nursery, autojump_clock) -> None:
    """A nursery that is owned by the program must be able to close."""
    owner = WatchedOwner(nursery)
    owner.watch.add("local", inf)
    assert not owner.watch.is_needed
    owner.watch.update(["local"])
    assert not nursery.child_tasks


@pytest.mark.parametrize("when", ["before", "after"])
async def test_stop_ends_the_task(nursery: trio.Nursery, autojump_clock, when: str) -> None:
    """Before the first hold-up the watch has no task."""
    owner = WatchedOwner(nursery, asked=3)
    owner.watch.add("slow", inf)
    if when == "after":
        owner.watch.update(["slow"])
        await trio.testing.wait_all_tasks_blocked()
        assert len(nursery.child_tasks) == 1
    owner.watch.stop()
    await trio.testing.wait_all_tasks_blocked()
    assert not nursery.child_tasks
    assert not owner.failed
    assert not owner.stopped


async def test_a_bound_is_needed_until_its_subscriber_has_left(nursery: trio.Nursery) -> None:
    """Without one the operator need not say which subscribers hold up the others."""
    owner = WatchedOwner(nursery)
    for name in ("one", "two"):
        owner.watch.add(name, 9)
    owner.watch.remove("one")
    assert owner.watch.is_needed
    owner.watch.remove("two")
    owner.watch.remove("never added")
    assert not owner.watch.is_needed


async def test_the_operator_is_told_if_the_timer_is_cancelled() -> None:
    """No subscriber would fail any more, and the others could wait without end."""
    async with trio.open_nursery() as nursery:
        owner = WatchedOwner(nursery, asked=3)
        owner.watch.add("slow", inf)
        owner.watch.update(["slow"])
        await trio.testing.wait_all_tasks_blocked()
        assert not owner.stopped
        nursery.cancel_scope.cancel()
    (error,) = owner.stopped
    assert isinstance(error, PublisherStopped)
    assert "test" in str(error)
