"""A stream or a request of a client is checked before anything is sent."""

from typing import Any

import pytest

from penstock.api import UsageError
from penstock.client import AnswerBuffer, ClientStream, request_opening, stream_opening
from tests.client._settings import HELLO, endpoint, settings


@pytest.mark.parametrize("name", ["", 3, "\ud800", "x" * 1025])
def test_a_name_that_the_peer_would_refuse_is_refused_here(name: Any) -> None:
    """For streams and for requests."""
    with pytest.raises(UsageError):
        stream_opening(settings(), name, kind=None, demand=1, serializer=None, window_bytes=None)
    with pytest.raises(UsageError):
        request_opening(settings(), name, None, kind=None, serializer=None)


@pytest.mark.parametrize("window_bytes", [0, -1, True, 1.5])
def test_a_window_that_is_no_number_is_refused(window_bytes: Any) -> None:
    """True is an int for Python."""
    with pytest.raises(UsageError, match="window_bytes="):
        stream_opening(
            settings(), "a", kind=None, demand=1, serializer=None, window_bytes=window_bytes
        )


def test_a_stream_is_opened_with_its_first_demand() -> None:
    """In one message; a window asks for a few elements first."""
    made = endpoint()
    made.receive(HELLO, 0.0)
    opening = stream_opening(
        settings(), "a", kind=None, demand=100, serializer=None, window_bytes=None
    )
    ClientStream(opening)._subscribe_to(made)
    assert bytes(made.take()) == bytes.fromhex("1001610008")


def test_places_stand_in_the_name_until_the_peer_has_the_extension() -> None:
    """Before its hello they are words; after it a message of the extension *position*."""
    before, after = endpoint(), endpoint()
    after.receive(bytes.fromhex("02000104"), 0.0)
    for made in (before, after):
        opening = stream_opening(settings(), "a", demand=1, start=500, stop="latest")
        ClientStream(opening)._subscribe_to(made)
    assert b"a?start=500&stop=latest" in before.take()
    assert bytes(after.take()) == bytes.fromhex("46 05 00 03 f4 03 02 10 01 61 00 01")


@pytest.mark.parametrize(
    "places", [{"start": -1}, {"start": "middle"}, {"stop": 2**63}, {"start": True}, {"start": 1.5}]
)
def test_a_place_that_is_none_is_refused(places: dict[str, Any]) -> None:
    """Also a place that the name has already."""
    with pytest.raises(UsageError, match="give a position"):
        stream_opening(settings(), "a", demand=1, **places)
    with pytest.raises(UsageError, match="give it once"):
        stream_opening(settings(), "a?start=1&stop=2", demand=1, **dict.fromkeys(places, 3))


def test_a_payload_waits_for_the_extensions_of_the_peer() -> None:
    """They are known with its hello. A peer without the extension cannot be asked so."""
    made = endpoint()
    opening = request_opening(settings(), "a", b"payload", kind=None, serializer=None)
    assert opening.needs_hello(made)
    made.receive(HELLO, 0.0)
    assert not opening.needs_hello(made)
    with pytest.raises(UsageError, match="extension 'requests'"):
        opening.open(made, AnswerBuffer())


def test_an_answer_is_bytes_or_of_the_type_that_was_asked_for() -> None:
    """`type` chooses the serializer."""
    assert request_opening(settings(), "a", None, kind=None, serializer=None).value(b"1") == b"1"
    assert request_opening(settings(), "a", None, kind=int, serializer=None).value(b"1") == 1
