"""Checks of an RS.io or ReactiveSocket server from outside: a table of requirements, and a check for each that sends raw bytes.

The checks import only `penstock.api` and `penstock.plugins`, to open connections. They do not use the codecs and the session of penstock,
because these are under test.
"""

from penstock_tck.wire._command import add_arguments, run_command
from penstock_tck.wire._large_elements import LARGE_BYTES, large_element
from penstock_tck.wire._report import as_json, as_text, summary
from penstock_tck.wire._requirement import Check, Level, Requirement
from penstock_tck.wire._run import check_target, requirements
from penstock_tck.wire._target import OFFERS, Target
from penstock_tck.wire._verdict import Result, Verdict

__all__ = [
    "LARGE_BYTES",
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
    "large_element",
    "requirements",
    "run_command",
    "summary",
]
