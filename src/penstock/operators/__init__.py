"""Operators: functions from a source to a source. Each one is also a method of `Source`. Imports
only `penstock.api` and `penstock.core`.

To add an operator, put it into the file of its family (or a new file), list it here, and test it in
the test file of the same name.
Write a `Step` if it looks at one element at a time, a `JoinStage` if it has several sources,
and otherwise a `Stage`.
Then add its method to `Source` in `core/_source.py`, of one line:
``return self.pipe(OPERATORS.take(count))``. A test compares both.
If the arguments do not fix the element type, the operator returns a type of `_operator.py`, so
that mypy infers it in a pipe.
The rules are at the top of `_stage.py`. Add its rows to `tests/operators/promises.py`: tests
measure demand, buffer and ends by them.
"""

from penstock.core import OPERATORS as _OPERATORS
from penstock.core import Group, Operator
from penstock.operators._buffer import batch, buffer, drop, latest
from penstock.operators._combine import combine_latest, merge, with_latest_from, zip  # noqa: A004  # the usual names of these operators
from penstock.operators._flatten import concat, flat_map, start_with, switch_map
from penstock.operators._group_by import group_by
from penstock.operators._holding_stage import HoldingStage
from penstock.operators._operator import (
    ListOperator,
    OperatorBase,
    PairOperator,
    SameTypeOperator,
    TupleOperator,
    UnionOperator,
    WindowOperator,
)
from penstock.operators._pipe import pipe
from penstock.operators._processor import processor
from penstock.operators._record import record
from penstock.operators._recover import on_error_resume, retry
from penstock.operators._repeat import repeat
from penstock.operators._select import distinct_until_changed, filter, first, skip, take, take_while  # noqa: A004  # the usual names
from penstock.operators._share import share
from penstock.operators._stage import Stage
from penstock.operators._take_until import take_until
from penstock.operators._timer import Timer
from penstock.operators._timing import debounce, delay, sample, throttle, timeout
from penstock.operators._transform import map, pairwise, reduce, scan, tap  # noqa: A004  # the usual names of these operators
from penstock.operators._window import window

__all__ = [
    "Group",
    "HoldingStage",
    "ListOperator",
    "Operator",
    "OperatorBase",
    "PairOperator",
    "SameTypeOperator",
    "Stage",
    "Timer",
    "TupleOperator",
    "UnionOperator",
    "WindowOperator",
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

# The methods of `Source` find these functions here.
# Core declares the methods and cannot import this layer.
vars(_OPERATORS).update({name: globals()[name] for name in __all__})
