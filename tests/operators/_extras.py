"""What several tests of operators do with the bench."""

from collections.abc import Callable
from typing import Any

import trio

from penstock.core import Scope
from penstock.operators import Operator
from tests.operators.measure import Bench, Line, Recorder


def answer_at_once(bench: Bench) -> None:
    """Make the lines of `bench` answer inside `request`, like a synchronous publisher that bounds recursion (rule 3.3)."""
    answering: list[Line] = []

    def asked(line: Line) -> None:
        if line not in answering:
            answering.append(line)
            line.answer()
            answering.remove(line)

    bench.asked = asked  # type: ignore[method-assign]  # another way to answer


async def stop_nursery(bench: Bench, operator: Operator[Any, Any], begin: Callable[[Recorder], Any]) -> Recorder:
    """Run `operator` in a nursery of its own, `begin`, wait until all is quiet, and cancel the nursery."""
    async with trio.open_nursery() as nursery:
        bench.scope = Scope(nursery, on_violation=bench.failures.append)
        recorder = bench.run(operator)
        begin(recorder)
        await bench.settle()
        nursery.cancel_scope.cancel()
    return recorder


async def close_nursery(bench: Bench) -> None:
    """Let the bench run what follows in a nursery that has closed."""
    async with trio.open_nursery() as nursery:
        bench.scope = Scope(nursery, on_violation=bench.failures.append)
