"""Faults of the saboteurs in other forms: pulled from an async generator, after a channel, read
ahead, in a class without tasks.

Each fault is tried in one form here. `whole_other_forms.py` tries each in every form:
`nox -s altered`.
"""

import re
from itertools import cycle
from pathlib import Path

import pytest

from tck.tests._other_forms import FORMS
from tck.tests._other_forms_verified import (
    FAULTS,
    HONEST,
    NOT_IN,
    PROCESSOR_FAULTS,
    SUBSCRIBER_FAULTS,
    SlowGenerator,
    alarms,
    fails,
    processor_verification,
    subscriber_verification,
    verification,
)
from tck.tests._other_subscribers import SUBSCRIBERS

tck_verifies_nothing = "it runs single checks"

HERE = Path(__file__).parent


@pytest.mark.parametrize(("fault", "form"), list(zip(FAULTS, cycle(FORMS), strict=False)))
def test_a_fault_of_a_publisher_is_caught_in_another_form(fault: str, form: str) -> None:
    """The check fails for a form that can have the fault."""
    other = form if form != NOT_IN.get(fault) else "generator"
    assert fails(verification(other, fault), FAULTS[fault])


@pytest.mark.parametrize(
    ("fault", "form"), list(zip(SUBSCRIBER_FAULTS, cycle(SUBSCRIBERS), strict=False))
)
def test_a_fault_of_a_subscriber_is_caught_in_another_form(fault: str, form: str) -> None:
    """The check that `SUBSCRIBER_FAULTS` names for this fault fails."""
    assert fails(subscriber_verification(form, fault), SUBSCRIBER_FAULTS[fault])


@pytest.mark.parametrize("fault", PROCESSOR_FAULTS)
def test_a_fault_of_a_processor_is_caught_in_another_form(fault: str) -> None:
    """The check that `PROCESSOR_FAULTS` names for this fault fails."""
    assert fails(processor_verification(fault), PROCESSOR_FAULTS[fault])


def test_a_form_without_a_fault_passes_every_check() -> None:
    """No check fails, and the whole set of checks was run."""
    assert alarms(verification("channel", HONEST, seeds=30)) == []


@pytest.mark.parametrize(
    "check",
    [
        "a_subscribe_inside_a_signal_of_another_is_served",
        "a_cancel_inside_a_signal_of_another_is_obeyed",
        "cancel_stops_a_stream_with_unbounded_demand",
        "nothing_comes_after_a_cancel_inside_on_next",
    ],
)
def test_several_elements_may_take_longer_than_settle_seconds(check: str) -> None:
    """The checks wait as long as elements come:
    `settle_seconds` need not be the time of all of them.
    """
    assert not fails(SlowGenerator, check)


def test_each_switch_has_a_check() -> None:
    """The tables name the switches of the two files, and no others."""
    subscribers, processor = (
        (HERE / "_other_subscribers.py").read_text(encoding="utf-8").split("class TaskProcessor")
    )
    publishers = (HERE / "_other_forms.py").read_text(encoding="utf-8")
    assert _switches(publishers) == set(FAULTS)
    assert _switches(subscribers) == set(SUBSCRIBER_FAULTS)
    assert _switches(processor) == set(PROCESSOR_FAULTS)


def _switches(text: str) -> set[str]:
    return {
        first or second
        for first, second in re.findall(r'has\("([\w-]+)"\)|"([\w-]+)" in self\.faults', text)
    }
