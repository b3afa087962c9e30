"""What several tests of operators do with the bench."""

from collections.abc import Callable
from typing import Any

import trio

from penstock.core import Scope
from penstock.operators import Operator
from tests.operators.harness import OperatorHarness, Recorder, Upstream


def answer_at_once(harness: OperatorHarness) -> None:
    """Make the lines of `harness` answer inside `request`, like a synchronous publisher that bounds recursion (rule 3.3)."""
    answering: list[Upstream] = []

    def asked(upstream: Upstream) -> None:
        if upstream not in answering:
            answering.append(upstream)
            upstream.answer()
            answering.remove(upstream)

    harness.on_request = asked  # type: ignore[method-assign]  # another way to answer


async def stop_nursery(harness: OperatorHarness, operator: Operator[Any, Any], begin: Callable[[Recorder], Any]) -> Recorder:
    """Run `operator` in a nursery of its own, `begin`, wait until all is quiet, and cancel the nursery."""
    async with trio.open_nursery() as nursery:
        harness.scope = Scope(nursery, on_violation=harness.failures.append)
        recorder = harness.run(operator)
        begin(recorder)
        await harness.settle()
        nursery.cancel_scope.cancel()
    return recorder


async def close_nursery(harness: OperatorHarness) -> None:
    """Let the bench run what follows in a nursery that has closed."""
    async with trio.open_nursery() as nursery:
        harness.scope = Scope(nursery, on_violation=harness.failures.append)
