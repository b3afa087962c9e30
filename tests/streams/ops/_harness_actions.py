"""Actions on an `OperatorHarness` that several test modules share."""

from collections.abc import Callable
from typing import Any

import trio

from penstock.core import Scope
from penstock.streams.ops import Operator
from tests.streams.ops.harness import OperatorHarness, Recorder, Upstream


def answer_at_once(harness: OperatorHarness) -> None:
    """Make the upstreams signal inside `request`, like a synchronous publisher
    that bounds its recursion (rule 3.3).
    """
    answering: list[Upstream] = []

    def on_request(upstream: Upstream) -> None:
        if upstream not in answering:
            answering.append(upstream)
            upstream.answer()
            answering.remove(upstream)

    harness.on_request = on_request  # type: ignore[method-assign]  # replaces the answer for this harness only


async def stop_nursery(
    harness: OperatorHarness, operator: Operator[Any, Any], begin: Callable[[Recorder], Any]
) -> Recorder:
    """Run `operator` in its own nursery, call `begin`, wait until all tasks are blocked,
    and cancel the nursery.
    """
    async with trio.open_nursery() as nursery:
        harness.scope = Scope(nursery, on_violation=harness.failures.append)
        recorder = harness.run(operator)
        begin(recorder)
        await harness.settle()
        nursery.cancel_scope.cancel()
    return recorder


async def close_nursery(harness: OperatorHarness) -> None:
    """Give the harness a scope whose nursery has closed."""
    async with trio.open_nursery() as nursery:
        harness.scope = Scope(nursery, on_violation=harness.failures.append)
