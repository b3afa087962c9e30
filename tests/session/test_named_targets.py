"""The target of a request by name, and why a connection has none for it."""

import pytest

from penstock.api import Limits, Model, Role, UsageError
from penstock.session import DEMAND_SIZE, check_length, longest_data, target_of, why_unsupported
from tests.session._pair import RecordingDelegate


def test_a_name_alone_is_the_target_on_rsio() -> None:
    """RS.io subscribes to the name."""
    assert target_of(RecordingDelegate(Role.CLIENT).session, "price", None) == "price"


def test_a_payload_needs_the_extension() -> None:
    """Without it the error says what to do, and names the request."""
    with pytest.raises(UsageError, match=r"request\('price'\) has a payload: .*extension 'requests'"):
        target_of(RecordingDelegate(Role.CLIENT).session, "price", b"x")


def test_the_advice_for_another_protocol_names_it() -> None:
    """The dialect has no such model, and no option changes that."""
    assert "speaks other, which has no" in why_unsupported("other", Model.STREAM)


def test_data_above_the_bound_is_refused() -> None:
    """On RS.io the bound is that of an element with its name."""
    channel = RecordingDelegate(Role.CLIENT).session.channel
    check_length(channel, Model.RESPONSE, longest_data(Limits()))
    with pytest.raises(UsageError, match=r"Limits\.max_element"):
        check_length(channel, Model.RESPONSE, longest_data(Limits()) + 1)
    assert DEMAND_SIZE == 8
