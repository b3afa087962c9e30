"""Tools for testing your own streams, with any test runner: this package imports no pytest.

* `ManualSubscriber` requests on command, records every signal and checks it against the rules.
  `ManualPublisher` signals on command, records demand, and breaks rules on command. Both write a
  readable `Transcript`.
* `run_virtual` runs a test in virtual time and in a repeatable order.
  `settle` waits until every other task is blocked.
  `WorkerThreads` makes both wait for threads.
* `cancel_at_step` cancels at the k-th task step, and `LeakCensus` reports what is left.
* `check_encoding` checks an encoding of RS.io messages.
* `check_group` checks a plugin's groups of readers against the contract of
  `penstock.brokers.Member`.
* `check_log` checks any implementation of `penstock.logs.Log` against its contract.
* `check_outages` checks a log and a group on a server that is killed, stalls, and stays away.
* `pipe_tree` is the text that `penstock.inspect` prints: the open streams, each with its pipe.
* `FrameList` and `MessageList` keep what a wire decoder reports, as records.
"""

import typing as _typing

from penstock._elsewhere import teller as _teller
from penstock.runtime import pipe_tree
from penstock.testing._check_group import GroupBench, check_group
from penstock.testing._check_log import check_log
from penstock.testing._check_outages import KillableServer, OutageBench, check_outages
from penstock.testing._encoding_check import check_encoding
from penstock.testing._expectations import ExpectationFailed, settle
from penstock.testing._leak_census import LeakCensus, is_dropped, live_tasks, referrers
from penstock.testing._manual_publisher import ManualPublisher
from penstock.testing._manual_subscriber import ManualSubscriber
from penstock.testing._message_list import MessageList
from penstock.testing._rule_set import DRAFT, MODERN, RuleSet, Signal, SubscriberState
from penstock.testing._seeded_scheduler import reseed, seeded
from penstock.testing._signal_ledger import RunawaySignals, SignalLedger
from penstock.testing._task_steps import cancel_at_step
from penstock.testing._transcript import Record, Transcript, Violation, shown
from penstock.testing._virtual_run import run_virtual
from penstock.testing._worker_threads import WorkerThreads

# For penstock's own layers: private to programs and plugins, so `__all__` lacks them.
# isort: off
from penstock.testing._frame_list import FrameList as FrameList
# isort: on

__all__ = [
    "DRAFT",
    "MODERN",
    "ExpectationFailed",
    "GroupBench",
    "KillableServer",
    "LeakCensus",
    "ManualPublisher",
    "ManualSubscriber",
    "MessageList",
    "OutageBench",
    "Record",
    "RuleSet",
    "RunawaySignals",
    "Signal",
    "SignalLedger",
    "SubscriberState",
    "Transcript",
    "Violation",
    "WorkerThreads",
    "cancel_at_step",
    "check_encoding",
    "check_group",
    "check_log",
    "check_outages",
    "is_dropped",
    "live_tasks",
    "pipe_tree",
    "referrers",
    "reseed",
    "run_virtual",
    "seeded",
    "settle",
    "shown",
]

if not _typing.TYPE_CHECKING:  # a checker would take each name for one of this package
    __getattr__ = _teller(__name__)
