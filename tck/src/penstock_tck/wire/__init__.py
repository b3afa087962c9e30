"""Any implementation of RS.io or ReactiveSocket, checked from outside: a table of requirements, and raw bytes that put a server to each.

May import `penstock.api` and `penstock.plugins`, to connect. Codecs and session are what is checked, and are not used.
"""

from penstock_tck.wire._command import add_arguments, run_command
from penstock_tck.wire._report import as_json, as_text, summary
from penstock_tck.wire._requirement import Check, Level, Requirement
from penstock_tck.wire._run import check_target, requirements
from penstock_tck.wire._target import OFFERS, Target
from penstock_tck.wire._verdict import Result, Verdict

__all__ = [
    "OFFERS",
    "Check",
    "Level",
    "Requirement",
    "Result",
    "Target",
    "Verdict",
    "add_arguments",
    "as_json",
    "as_text",
    "check_target",
    "requirements",
    "run_command",
    "summary",
]
