"""A processor by the rules of the early draft. The kit verifies it;
here are its arguments and its neighbours.
"""

from typing import Any

import pytest
import trio
import trio.testing

import penstock
from penstock import ops
from penstock.api import UsageError
from penstock.draft import DraftProcessor, as_draft, as_modern, draft_processor


async def numbers() -> Any:
    for number in range(5):
        yield number


async def test_a_draft_processor_stands_between_objects_of_the_draft() -> None:
    """A publisher of the draft subscribes it, and its stream is read back through `as_modern`."""
    async with trio.open_nursery() as nursery:
        processor = draft_processor(
            nursery, penstock.processor(nursery, ops.map(lambda number: number * 2))
        )
        assert isinstance(processor, DraftProcessor)
        async with penstock.subscribe(as_modern(processor)) as stream:
            as_draft(penstock.generate(numbers).publisher(nursery)).subscribe(processor)
            assert [number async for number in stream] == [0, 2, 4, 6, 8]


async def test_a_failure_of_the_publisher_reaches_the_subscribers() -> None:
    """A subscriber gets the same exception object that the publisher has signalled."""
    error = ValueError("it failed")
    async with trio.open_nursery() as nursery:
        processor = draft_processor(nursery, penstock.processor(nursery))
        async with penstock.subscribe(as_modern(processor)) as stream:
            as_draft(penstock.failed(error).publisher(nursery)).subscribe(processor)
            with pytest.raises(ValueError, match="it failed") as caught:
                await anext(stream)
    assert caught.value is error


async def test_a_subscriber_that_leaves_ends_the_task_of_the_mailbox() -> None:
    """And cancels the publisher, so the nursery can close."""
    async with trio.open_nursery() as nursery:
        processor = draft_processor(nursery, penstock.processor(nursery))
        async with penstock.subscribe(as_modern(processor), demand=1) as stream:
            as_draft(penstock.generate(numbers).publisher(nursery)).subscribe(processor)
            assert await anext(stream) == 0
        await trio.testing.wait_all_tasks_blocked()
        assert not nursery.child_tasks


@pytest.mark.parametrize("wrong", [None, 5, [1]])
async def test_an_object_that_is_no_processor_is_refused(wrong: Any) -> None:
    """The error says how to make one."""
    async with trio.open_nursery() as nursery:
        with pytest.raises(
            UsageError,
            match=r"^draft_processor\(\) was given .*, which is not a subscriber and a publisher; make one",
        ):
            draft_processor(nursery, wrong)


async def test_a_draft_processor_shows_what_it_adapts() -> None:
    """The repr contains that of the processor inside."""
    async with trio.open_nursery() as nursery:
        assert repr(draft_processor(nursery, penstock.processor(nursery))).startswith(
            "<draft of <processor <processor>: <fan-out live"
        )
