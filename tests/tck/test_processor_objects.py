"""The test kit over processor objects:
`penstock.processor`, and `draft_processor` over it, with several subscribers.

Checks run on the kit's MockClock.
"""

from typing import Any

import trio
from penstock_tck import DRAFT, ProcessorVerification

import penstock
from penstock import ops
from penstock.draft import draft_processor


async def _later(element: Any) -> Any:
    await trio.lowlevel.checkpoint()
    return element


class Identity(ProcessorVerification):
    """A processor without an operator."""

    multicast = True
    violations_reported = True
    eager_completion = True
    max_subscribers = 3
    operators: tuple[Any, ...] = ()

    def create_processor(self) -> Any:
        return penstock.processor(
            self.env.nursery, *self.operators, on_violation=self.reported_violations.append
        )


class Mapped(Identity):
    """With operators that need no task."""

    operators = (
        ops.map(lambda element: element),
        ops.filter(lambda element: True),
        ops.scan(lambda _, element: element, 0),
    )


class MappedInATask(Identity):
    """With an async function: its elements wait for a task, and an error overtakes them."""

    eager_completion = False
    errors_overtake = True
    operators = (ops.map(_later),)


class Buffered(Identity):
    """With a buffer, which requests elements before there is demand."""

    reads_ahead = True
    # With several, the buffer holds elements until the slowest requests one,
    # and a check expects them at the first.
    max_subscribers = 1
    operators = (ops.buffer(4),)


class Resumed(Identity):
    """With an operator that recovers from an error upstream."""

    recovers = True
    operators = (ops.on_error_resume(penstock.empty()),)


class OfTheDraft(ProcessorVerification):
    """The same by the rules of the early draft."""

    profile = DRAFT
    multicast = True
    max_subscribers = 3
    operators: tuple[Any, ...] = ()

    def create_processor(self) -> Any:
        nursery = self.env.nursery
        return draft_processor(nursery, penstock.processor(nursery, *self.operators))

    async def create_completed_publisher(self) -> Any:
        publisher = await self.connect(self.create_upstream(0))
        await self.settle()  # D6.1: its task handles on_complete
        return publisher


class MappedOfTheDraft(OfTheDraft):
    """With operators."""

    operators = (ops.map(lambda element: element), ops.filter(lambda element: True))
