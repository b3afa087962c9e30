"""Each fault of the other forms, in every form that can have it, and every honest form.
`test_other_forms.py` takes a part.
"""

import pytest
from penstock_tck import Verification

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


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_a_publisher_is_caught_in_each_form(fault: str, form: str) -> None:
    """The check fails for each form that can have the fault, and for no other."""
    assert fails(verification(form, fault), FAULTS[fault]) == (form != NOT_IN.get(fault))


@pytest.mark.parametrize("form", SUBSCRIBERS)
@pytest.mark.parametrize("fault", SUBSCRIBER_FAULTS)
def test_a_fault_of_a_subscriber_is_caught_in_each_form(fault: str, form: str) -> None:
    """The check fails for both forms."""
    assert fails(subscriber_verification(form, fault), SUBSCRIBER_FAULTS[fault])


@pytest.mark.parametrize("fault", PROCESSOR_FAULTS)
def test_a_fault_of_a_processor_is_caught(fault: str) -> None:
    """The check fails."""
    assert fails(processor_verification(fault), PROCESSOR_FAULTS[fault])


HONEST_FORMS = {
    **{form: verification(form, HONEST) for form in FORMS},
    **{f"{form}-subscriber": subscriber_verification(form, HONEST) for form in SUBSCRIBERS},
    "processor": processor_verification(HONEST),
    "slow": SlowGenerator,
}


@pytest.mark.parametrize("form", HONEST_FORMS)
def test_a_form_without_a_fault_passes_every_check(form: str) -> None:
    """No check fails."""
    honest: type[Verification] = HONEST_FORMS[form]
    assert alarms(honest) == []
