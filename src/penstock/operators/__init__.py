"""Verbs over publishers, one family a file, composed with `pipe`. May import `penstock.api` and `penstock.core`.

A new operator goes into the file of its family (or a new one), is listed here, and gets its tests in `tests/operators` under the same name.
For one that looks at an element at a time, write a `Step`; for one of several sources a `Junction`; for anything else a `Stage`.
`_stage.py` says which rules bind it. Its rows in `tests/operators/promises.py` say what it promises, and are measured.
"""

from penstock.operators._buffer import batch, buffer, drop, latest
from penstock.operators._combine import combine_latest, merge, zip  # noqa: A004  # the words that everybody knows
from penstock.operators._flatten import concat, flat_map
from penstock.operators._pipe import pipe
from penstock.operators._recover import on_error_resume, retry
from penstock.operators._select import distinct_until_changed, filter, first, skip, take, take_while  # noqa: A004  # the words that everybody knows
from penstock.operators._stage import Operator
from penstock.operators._timing import debounce, throttle, timeout
from penstock.operators._transform import map, scan, tap  # noqa: A004  # the words that everybody knows

__all__ = [
    "Operator",
    "batch",
    "buffer",
    "combine_latest",
    "concat",
    "debounce",
    "distinct_until_changed",
    "drop",
    "filter",
    "first",
    "flat_map",
    "latest",
    "map",
    "merge",
    "on_error_resume",
    "pipe",
    "retry",
    "scan",
    "skip",
    "take",
    "take_while",
    "tap",
    "throttle",
    "timeout",
    "zip",
]
