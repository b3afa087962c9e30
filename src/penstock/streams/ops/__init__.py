"""Operators: functions from a source to a source. Each one is also a method of `Source`.
Imports `penstock.api`, `penstock.core`, and the sources of `penstock.streams`.

To add an operator, put it into the file of its family (or a new file), list it here, and test it in
the test file of the same name.
Write a `Step` if it looks at one element at a time, a `JoinStage` if it has several sources,
and otherwise a `Stage`.
Then add its method to `Source` in `streams/_source.py`, of one line:
``return self.pipe(ops.take(count))``. A test compares both.
If the arguments do not fix the element type, the operator returns a type of `_operator.py`, so
that mypy infers it in a pipe.
The rules are at the top of `_stage.py`. Add its rows to `tests/streams/ops/promises.py`: tests
measure demand, buffer and ends by them.
"""

from penstock.streams.ops._buffer import batch, buffer, drop, latest
from penstock.streams.ops._combine import combine_latest, merge, with_latest_from, zip  # noqa: A004  # the usual names of these operators
from penstock.streams.ops._flatten import concat, flat_map, start_with, switch_map
from penstock.streams.ops._group_by import group_by
from penstock.streams.ops._holding_stage import HoldingStage
from penstock.streams.ops._operator import OperatorBase
from penstock.streams.ops._pipe import pipe
from penstock.streams.ops._processor import processor
from penstock.streams.ops._record import record
from penstock.streams.ops._resubscribe import on_error_resume, repeat, retry
from penstock.streams.ops._select import (
    distinct_until_changed,
    filter,  # noqa: A004  # the usual name of this operator
    first,
    skip,
    take,
    take_while,
)
from penstock.streams.ops._share import share
from penstock.streams.ops._stage import Stage
from penstock.streams.ops._take_until import take_until
from penstock.streams.ops._timer import Timer
from penstock.streams.ops._timing import debounce, delay, sample, throttle, timeout
from penstock.streams.ops._transform import map, pairwise, reduce, scan, tap  # noqa: A004  # the usual names of these operators
from penstock.streams.ops._window import window

# For penstock's own layers: private to programs and plugins, so `__all__` lacks them.
# isort: off
from penstock.streams._source import Group as Group, Operator as Operator
# isort: on

__all__ = [
    "HoldingStage",
    "OperatorBase",
    "Stage",
    "Timer",
    "batch",
    "buffer",
    "combine_latest",
    "concat",
    "debounce",
    "delay",
    "distinct_until_changed",
    "drop",
    "filter",
    "first",
    "flat_map",
    "group_by",
    "latest",
    "map",
    "merge",
    "on_error_resume",
    "pairwise",
    "pipe",
    "processor",
    "record",
    "reduce",
    "repeat",
    "retry",
    "sample",
    "scan",
    "share",
    "skip",
    "start_with",
    "switch_map",
    "take",
    "take_until",
    "take_while",
    "tap",
    "throttle",
    "timeout",
    "window",
    "with_latest_from",
    "zip",
]
