"""The audit: judges recorded signals, on Spark.

`audit` returns the report as plain values, `page_of` makes a page of HTML of it.
The command is ``penstock audit DIR``.
"""

from penstock_spark.audit._audit import STALL_SECONDS, audit
from penstock_spark.audit._folder import files_of
from penstock_spark.audit._page import page_of
from penstock_spark.audit._rules import FINDINGS, RULES, Rule
from penstock_spark.audit._window_job import judge_by_windows

__all__ = [
    "FINDINGS",
    "RULES",
    "STALL_SECONDS",
    "Rule",
    "audit",
    "files_of",
    "judge_by_windows",
    "page_of",
]
