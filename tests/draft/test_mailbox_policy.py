"""The policies of the mailbox: the call for demand, the rule numbers,
and the answer to a second subscription.
"""

import pytest

from penstock.api import InvalidStateError
from penstock.draft import MailboxPolicy
from penstock.streams._mailbox import MailboxRules
from tests.core._foreign import CallRecorder


@pytest.mark.parametrize("policy", MailboxPolicy, ids=lambda policy: policy.value)
def test_each_policy_is_a_set_of_rules(policy: MailboxPolicy) -> None:
    """`MailboxSubscriber` takes it directly."""
    assert isinstance(policy, MailboxRules)


@pytest.mark.parametrize(
    ("policy", "call"), [(MailboxPolicy.MODERN, "request"), (MailboxPolicy.DRAFT, "request_more")]
)
def test_demand_goes_to_the_method_of_the_generation(policy: MailboxPolicy, call: str) -> None:
    """The two generations differ in its name."""
    policy.request(calls := CallRecorder(), 3)
    assert calls.log == [(call, 3)]


@pytest.mark.parametrize(("rule", "draft"), [("1.1", "D4.1"), ("3.15", "D3.2"), ("3.16", "D2.2")])
def test_a_rule_has_a_number_in_each_generation(rule: str, draft: str) -> None:
    """A violation names the rule by the number that the publisher's author knows."""
    assert MailboxPolicy.MODERN.number_of(rule) == rule
    assert MailboxPolicy.DRAFT.number_of(rule) == draft


def test_only_the_draft_raises_for_a_second_subscription() -> None:
    """The modern rules cancel it (rule 2.5), the draft wants an error (D7.1)."""
    assert MailboxPolicy.MODERN.second_subscription_error() is None
    assert isinstance(MailboxPolicy.DRAFT.second_subscription_error(), InvalidStateError)
