"""The user's `may_open`: every failure of it is a refusal."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from penstock.api import Model, NotAvailable, PublicError, Request, UsageError, encode_named_request
from penstock.runtime.service import Forbidden, Service
from penstock.runtime.service._authorisation import Authorisation
from penstock.runtime.service._router import MOST_PARAMETERS, canonical_name
from penstock.runtime.service._service import LONGEST_NAME
from penstock.spi import PeerIdentity

PEER = PeerIdentity(address="test")


def raising(error: Exception) -> Callable[..., Any]:
    def may_open(*_: object) -> bool:
        raise error

    return may_open


async def _late(*_: object) -> bool:
    return True


def iter_true() -> Iterator[bool]:
    yield True


@pytest.mark.parametrize(
    ("may_open", "reason", "reported"),
    [
        (lambda *_: False, "may_open refused it", None),
        (lambda *_: None, "may_open refused it", None),
        (raising(NotAvailable("not yours")), "may_open raised NotAvailable: not yours", None),
        (raising(PublicError("not yours")), "may_open raised PublicError: not yours", None),
        (raising(ValueError("a secret")), "may_open raised ValueError", ValueError),
        (lambda *_: _late(), "may_open returned an awaitable", UsageError),
        (lambda *_: iter_true(), "may_open returned no verdict", UsageError),
        (lambda *_: iter_true, "may_open returned no verdict", UsageError),
    ],
    ids=[
        "false",
        "none",
        "not available",
        "public error",
        "fault",
        "coroutine",
        "generator",
        "function",
    ],
)
def test_each_failure_refuses_and_only_faults_are_reported(
    may_open: Callable[..., Any], reason: str, reported: type[Exception] | None
) -> None:
    """The reason is for the log; the peer gets the answer to a missing name."""
    told: list[Exception] = []
    with pytest.raises(Forbidden) as refused:
        Authorisation(Service(), may_open, told.append)("x", PEER)
    assert str(refused.value) == reason
    assert [type(each) for each in told] == [reported] * (reported is not None)


def test_true_lets_the_peer_in() -> None:
    """Any value that counts as true does."""
    assert Authorisation(Service(), lambda *_: True, raising(AssertionError()))("x", PEER) is True


@pytest.mark.parametrize(
    ("name", "canonical"),
    [
        ("ticks/EURUSD", "ticks/EURUSD"),
        ("ticks/%45UR%55SD", "ticks/EURUSD"),
        ("ticks/a%2fb%3F%25", "ticks/a%2Fb%3F%25"),
        ("t%69cks", "ticks"),
        ("ticks?every=%31", "ticks?every=1"),
        ("ticks?a=x+y&&b=%20", "ticks?a=x+y&b=+"),
        ("ticks?a=", "ticks?a="),
        ("höhe/%C3%B6", "höhe/ö"),
    ],
)
def test_a_name_has_one_canonical_spelling(name: str, canonical: str) -> None:
    """A second spelling of a forbidden name is the same name to `may_open`."""
    assert canonical_name(name) == canonical
    assert canonical_name(canonical) == canonical


def test_a_name_with_too_many_parameters_is_not_parsed() -> None:
    """It leads nowhere in any spelling."""
    name = "%61?" + "&".join(["%61=1"] * MOST_PARAMETERS)
    assert canonical_name(name).startswith("a?a=1&")
    assert canonical_name(f"{name}&a=1") == f"{name}&a=1"


def test_the_long_name_of_a_request_is_not_parsed() -> None:
    """A name of 64 KiB took 60 ms. The function gets the request, which leads nowhere."""
    service = Service()

    @service.request("echo")
    async def echo(payload: bytes) -> bytes:
        return payload

    longest = Request(Model.RESPONSE, encode_named_request("%61" * (LONGEST_NAME // 3), b""))
    assert service.name_of(longest) == "a" * (LONGEST_NAME // 3)
    longer = Request(Model.RESPONSE, encode_named_request("%61" * (LONGEST_NAME // 3 + 1), b""))
    assert service.name_of(longer) is longer
