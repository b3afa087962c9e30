"""An event that makes the event of trio for the first task that waits."""

import trio
import trio.testing

from penstock.runtime.connection._lazy_event import LazyEvent


async def test_all_tasks_that_wait_go_on() -> None:
    """Those that come later do not wait, but for one checkpoint."""
    event, seen = LazyEvent(), []

    async def wait(number: int) -> None:
        await event.wait()
        seen.append(number)

    async with trio.open_nursery() as nursery:
        for number in range(3):
            nursery.start_soon(wait, number)
        await trio.testing.wait_all_tasks_blocked()
        assert not event.is_set()
        assert seen == []
        event.set()
        event.set()
    assert event.is_set()
    assert sorted(seen) == [0, 1, 2]
    with trio.testing.assert_checkpoints():
        await event.wait()


def test_the_callback_is_called_once() -> None:
    """From inside `set`, or at once if that was called before."""
    event, calls = LazyEvent(), []
    event.call_when_set(lambda: calls.append("set"))
    assert calls == []
    event.set()
    event.set()
    assert calls == ["set"]
    event.call_when_set(lambda: calls.append("later"))
    assert calls == ["set", "later"]
