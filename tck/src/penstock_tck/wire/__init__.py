"""Checks of an RS.io or ReactiveSocket server from outside: a table of requirements, and a check
for each that sends raw bytes. Clients can be checked as well, if the table of their protocol has
requirements for them.

The checks import only `penstock.api` and `penstock.spi`, to open connections. They do not use the
codecs and the session of penstock, because these are under test. A plugin with a protocol of its
own brings its requirements as a `WireTable`.
"""

from penstock_tck.wire._check_context import CheckContext, Connect
from penstock_tck.wire._command import add_arguments, run_command
from penstock_tck.wire._large_elements import LARGE_BYTES, large_element
from penstock_tck.wire._missing_publishers import Refusal
from penstock_tck.wire._named_request import named_request
from penstock_tck.wire._raw_connection import RawConnection
from penstock_tck.wire._recording_peer import RecordingPeer
from penstock_tck.wire._report import as_json, as_text, summary
from penstock_tck.wire._requirement import Check, Level, Requirement, Table, join_tables
from penstock_tck.wire._run import check_target, requirements
from penstock_tck.wire._run_client import check_client
from penstock_tck.wire._scripted_server import Script, scripted_server
from penstock_tck.wire._target import OFFERS, PRIVATE_TEXT, SLOW_ATTEMPTS, Target
from penstock_tck.wire._verdict import NotSupported, Result, Verdict, fail, verify
from penstock_tck.wire._wire_table import WireTable

__all__ = [
    "LARGE_BYTES",
    "OFFERS",
    "PRIVATE_TEXT",
    "SLOW_ATTEMPTS",
    "Check",
    "CheckContext",
    "Connect",
    "Level",
    "NotSupported",
    "RawConnection",
    "RecordingPeer",
    "Refusal",
    "Requirement",
    "Result",
    "Script",
    "Table",
    "Target",
    "Verdict",
    "WireTable",
    "add_arguments",
    "as_json",
    "as_text",
    "check_client",
    "check_target",
    "fail",
    "join_tables",
    "large_element",
    "named_request",
    "requirements",
    "run_command",
    "scripted_server",
    "summary",
    "verify",
]
