"""What users need to test their own streams, with trio and the standard library only: no pytest in here.

* `ManualSubscriber` asks on command, records every signal, and judges it by the grammar; `ManualPublisher` emits on command,
  watches demand, and misbehaves when it is asked to. Both write one readable `Transcript`.
* `run_virtual` runs a test in virtual time and in a repeatable order; `settle` waits until every other task is blocked.
* `cancel_at_step` cancels at the k-th task step, and `LeakCensus` says what is left.
"""

from penstock.testing._expectations import ExpectationFailed, settle
from penstock.testing._frame_list import FrameList
from penstock.testing._leak_census import LeakCensus, is_dropped, live_tasks, referrers
from penstock.testing._manual_publisher import ManualDraftSubscription, ManualLine, ManualPublisher, ManualSubscription
from penstock.testing._manual_subscriber import ManualSubscriber
from penstock.testing._message_list import MessageList
from penstock.testing._rule_set import DRAFT, MODERN, RuleSet, Signal, SubscriberState
from penstock.testing._seeded_scheduler import SEEDING_WORKS, seeded
from penstock.testing._signal_ledger import RunawaySignals, SignalLedger
from penstock.testing._task_steps import StepOutcome, cancel_at_step
from penstock.testing._transcript import Record, Transcript, Violation, shown
from penstock.testing._virtual_run import run_virtual

__all__ = [
    "DRAFT",
    "MODERN",
    "SEEDING_WORKS",
    "ExpectationFailed",
    "FrameList",
    "LeakCensus",
    "ManualDraftSubscription",
    "ManualLine",
    "ManualPublisher",
    "ManualSubscriber",
    "ManualSubscription",
    "MessageList",
    "Record",
    "RuleSet",
    "RunawaySignals",
    "Signal",
    "SignalLedger",
    "StepOutcome",
    "SubscriberState",
    "Transcript",
    "Violation",
    "cancel_at_step",
    "is_dropped",
    "live_tasks",
    "referrers",
    "run_virtual",
    "seeded",
    "settle",
    "shown",
]
