"""A place is taken until its stream has ended and its tasks have stopped."""

from typing import Any

import trio
import trio.testing

from penstock.core import Scope
from penstock.runtime.service import PlaceLimit, StreamSlot


def test_a_limit_gives_its_places_and_no_more() -> None:
    """A place that is free again can be taken again."""
    places = PlaceLimit(2)
    assert [places.take() for _ in range(3)] == [True, True, False]
    places.free()
    assert [places.take() for _ in range(2)] == [True, False]


async def test_a_slot_without_tasks_is_free_at_the_end_of_its_stream() -> None:
    """The callback is called afterwards."""
    places, ended = PlaceLimit(1), list[str]()
    assert places.take()
    async with trio.open_nursery() as nursery:
        slot = StreamSlot(places, lambda: ended.append("ended"))
        slot.scope = Scope(nursery, on_drained=slot.on_tasks_stopped)
        slot.on_stream_end()
        assert places.take()
    assert ended == ["ended"]


async def test_a_slot_with_tasks_is_free_once_when_they_have_stopped() -> None:
    """Tasks that stop before the end of the stream free nothing, and neither do tasks
    that start after it.
    """
    places: Any = PlaceLimit(1)
    assert places.take()
    async with trio.open_nursery() as nursery:
        slot = StreamSlot(places)
        scope = slot.scope = Scope(nursery, on_drained=slot.on_tasks_stopped)
        scope.spawn(trio.lowlevel.checkpoint, name="early")
        await trio.testing.wait_all_tasks_blocked()
        assert not places.take()
        scope.spawn(trio.sleep_forever, name="long")
        slot.on_stream_end()
        assert not places.take()
        scope.cancel()
        await trio.testing.wait_all_tasks_blocked()
        scope.spawn(trio.lowlevel.checkpoint, name="late")
        await trio.testing.wait_all_tasks_blocked()
        assert [places.take(), places.take()] == [True, False]
