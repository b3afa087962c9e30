"""The test kit: verify your publisher, subscriber or processor against the rules of Reactive
Streams.

::

    from penstock_tck import PublisherVerification

    class MyPublisher(PublisherVerification):
        def create_publisher(self, elements):
            return my_source(range(elements)).publisher(self.env.nursery)

Run pytest on that file. Each check is one test, and the run ends with the table rule -> checks ->
result for all 43 rules. Without pytest: ``run_checks(MyPublisher)``.

Files: `_rules.py` and its tables hold the rules. `_publisher_checks/`, `_subscriber_checks/`,
`_processor_checks/` and `_draft_checks/` hold the checks, one theme per file. The checks use
`_publisher_stage.py`, `_subscriber_stage.py` and `_processor_stage.py`. `_runner.py` runs them;
`_report*.py` and `_pytest_plugin.py` report the results. `wire/` checks servers of a protocol. The
kit tests an implementation from outside:
of penstock it imports only penstock.api, penstock.testing and penstock.spi.
"""

from penstock_tck._check import Check, Kind, check, checks_of, observation
from penstock_tck._draft_rules import DRAFT_RULES
from penstock_tck._environment import Environment
from penstock_tck._modern_rules import MODERN_RULES
from penstock_tck._processor_stage import ProcessorStage
from penstock_tck._profile import DRAFT, MODERN, Profile, SecondSubscription, find_rule
from penstock_tck._publisher_stage import PublisherStage
from penstock_tck._result import CheckResult, Outcome
from penstock_tck._rules import Account, Level, Rule
from penstock_tck._runner import run_check, run_checks, validate
from penstock_tck._subscriber_stage import SubscriberStage
from penstock_tck._upstream import CountingPublisher
from penstock_tck._verification import CheckFailed, Verification
from penstock_tck._verifications import (
    ProcessorVerification,
    PublisherVerification,
    SubscriberVerification,
)

__all__ = [
    "DRAFT",
    "DRAFT_RULES",
    "MODERN",
    "MODERN_RULES",
    "Account",
    "Check",
    "CheckFailed",
    "CheckResult",
    "CountingPublisher",
    "Environment",
    "Kind",
    "Level",
    "Outcome",
    "ProcessorStage",
    "ProcessorVerification",
    "Profile",
    "PublisherStage",
    "PublisherVerification",
    "Rule",
    "SecondSubscription",
    "SubscriberStage",
    "SubscriberVerification",
    "Verification",
    "check",
    "checks_of",
    "find_rule",
    "observation",
    "run_check",
    "run_checks",
    "validate",
]
