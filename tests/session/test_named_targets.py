"""The target of a request by name, and why a connection has no target for it."""

import pytest

from penstock.api import Limits, Model, Request, Role, UsageError, encode_named_request
from penstock.protocols.reactivesocket import ReactiveSocketDialect
from penstock.protocols.rsio import Requests
from penstock.session import (
    DEMAND_SIZE,
    DialectSettings,
    Session,
    check_length,
    longest_data,
    target_of,
    why_unsupported,
)
from tests.session._pair import LIMITS, Pair, RecordingDelegate, limits_with


def reactivesocket_session() -> Session:
    """Return the session of a client that speaks ReactiveSocket."""
    return Session(
        RecordingDelegate(Role.CLIENT),
        lambda session: ReactiveSocketDialect(session, DialectSettings()),
        role=Role.CLIENT,
        limits=LIMITS,
        random=lambda: 0.5,
    )


def test_a_name_alone_is_the_target_on_rsio() -> None:
    """RS.io subscribes to the name."""
    assert target_of(RecordingDelegate(Role.CLIENT).session, "price", None) == "price"


def test_a_payload_needs_the_extension() -> None:
    """Without it the error says what to do, and names the request."""
    with pytest.raises(
        UsageError, match=r"request\('price'\) has a payload: .*extension 'requests'"
    ):
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


def test_a_name_alone_is_the_data_of_a_request_on_reactivesocket() -> None:
    """A peer looks the name up in the data, which has no layout."""
    assert target_of(reactivesocket_session(), "pr\u00e9cis", None) == Request(
        Model.RESPONSE, "pr\u00e9cis".encode()
    )


def test_a_payload_goes_with_its_name() -> None:
    """On both protocols, if RS.io has the extension. An empty payload is a payload."""
    pair = Pair(extensions=[Requests()])
    pair.settle()
    for session in (pair.client.session, reactivesocket_session()):
        for payload in (b"", b"x"):
            assert target_of(session, "price", payload) == Request(
                Model.RESPONSE, encode_named_request("price", payload)
            )


def test_a_payload_above_max_element_is_refused_by_its_name() -> None:
    """The longest one that is allowed is not."""
    pair = Pair(limits=limits_with(max_element=100), extensions=[Requests()])
    pair.settle()
    target_of(pair.client.session, "price", bytes(100))
    with pytest.raises(
        UsageError,
        match=r"payload of request\('price'\) has 101 bytes; 100 is the most \(Limits\.max_element\)",
    ):
        target_of(pair.client.session, "price", bytes(101))


@pytest.mark.parametrize(
    ("model", "room"),
    [(Model.RESPONSE, 0), (Model.FIRE_AND_FORGET, 0), (Model.STREAM, 8), (Model.SUBSCRIPTION, 8)],
)
def test_a_frame_of_reactivesocket_bounds_the_data(model: Model, room: int) -> None:
    """A request for a stream has its demand in the same frame."""
    channel, most = reactivesocket_session().channel, LIMITS.max_frame - room
    check_length(channel, model, most)
    with pytest.raises(
        UsageError,
        match=rf"request data of {most + 1} bytes; {most} is the most, .*\(Limits\.max_frame\)",
    ):
        check_length(channel, model, most + 1)


def test_the_advice_depends_on_what_the_program_can_change() -> None:
    """Only request data on RS.io depends on an option. Other models need another protocol."""
    assert "leave extensions= out there" in why_unsupported("rsio", Model.RESPONSE)
    for protocol, model in (("rsio", Model.STREAM), ("other", Model.RESPONSE)):
        advice = why_unsupported(protocol, model)
        assert f"speaks {protocol}, which has no {model.value}" in advice
        assert "connect with reactivesocket+" in advice
