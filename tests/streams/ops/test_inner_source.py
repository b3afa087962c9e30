"""`InnerSource`: a stream for one subscriber.
The tests of `window` and `group_by` cover how it is filled.
"""

from typing import Any

import pytest

from penstock.api import PublisherStopped, UsageError
from penstock.streams import SlowPolicy
from penstock.streams.ops._inner_source import InnerSource
from penstock.streams.ops._output_queue import End, OutputQueue, Overflow, QueueOwner
from tests.streams.ops.harness import OperatorHarness, Recorder


class _Owner(QueueOwner):
    def on_queue_demand(self, queue: Any) -> None:
        """Do nothing: the test pushes."""

    def on_queue_closed(self, queue: Any) -> None:
        """Do nothing."""


def _made() -> tuple[OutputQueue[Any], InnerSource[Any]]:
    queue: OutputQueue[Any] = OutputQueue(_Owner(), Overflow(SlowPolicy.WAIT, 4))
    return queue, InnerSource(queue)


async def test_elements_before_the_subscriber_reach_it() -> None:
    """They wait, and so does the completion."""
    async with OperatorHarness() as harness:
        queue, source = _made()
        queue.push(1)
        queue.end(End(None))
        source.attach(harness.recorder, harness.scope)
        harness.recorder.request(5)
        assert harness.recorder.signals == [("next", 1), ("complete",)]


async def test_a_second_subscriber_is_refused() -> None:
    """It gets an error that says what to use.
    The first one is not affected, also not after its end.
    """
    async with OperatorHarness() as harness:
        queue, source = _made()
        source.attach(harness.recorder, harness.scope)
        for _ in range(2):
            second = Recorder(harness)
            source.attach(second, harness.scope)
            assert isinstance(second.error, UsageError)
            assert (
                "<window> has a subscriber, and can have only one. For several, use share()"
                in str(second.error)
            )
            if not harness.recorder.over:
                harness.recorder.request(1)
                queue.push(1)
                harness.recorder.cancel()
        assert harness.recorder.elements == [1]


@pytest.mark.parametrize("elements", [0, 2])
async def test_a_subscriber_after_the_drop_gets_an_error(elements: int) -> None:
    """The elements are gone, and the error says why."""
    async with OperatorHarness() as harness:
        queue, source = _made()
        for number in range(elements):
            queue.push(number)
        source.discard()
        source.attach(harness.recorder, harness.scope)
        assert harness.recorder.kinds == ["error"]
        assert isinstance(harness.recorder.error, PublisherStopped)
        assert "was dropped" in str(harness.recorder.error)
