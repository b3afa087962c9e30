"""The audit: judges recorded signals, on Spark.

`audit` returns the report as plain values, `page_of` makes a page of HTML of it, and `findings` a
DataFrame of its violations. `follow` judges a record that grows, in a streaming query. The command
is ``penstock audit FOLDER``.
"""

from penstock_spark.audit._audit import STALL_SECONDS, Audit, audit
from penstock_spark.audit._findings import findings
from penstock_spark.audit._folder import files_of
from penstock_spark.audit._following import EVERY, Following, follow
from penstock_spark.audit._page import page_of
from penstock_spark.audit._record_files import is_url
from penstock_spark.audit._rules import FINDINGS, RULES, Rule
from penstock_spark.audit._window_job import judge_by_windows

__all__ = [
    "EVERY",
    "FINDINGS",
    "RULES",
    "STALL_SECONDS",
    "Audit",
    "Following",
    "Rule",
    "audit",
    "files_of",
    "findings",
    "follow",
    "is_url",
    "judge_by_windows",
    "page_of",
]
