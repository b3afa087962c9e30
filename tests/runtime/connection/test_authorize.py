"""The function `authorize`: True lets the peer in, and everything else refuses."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from penstock.api import NotAvailable
from penstock.runtime import Service
from penstock.runtime.connection._authorize import Authorizer
from penstock.spi import PeerIdentity

PEER = PeerIdentity(address="a", principal="alice")


def outcome(authorize: Callable[..., Any]) -> tuple[str, list[Exception]]:
    told: list[Exception] = []
    reasons: list[str] = []

    def no_wait(awaitable: Awaitable[Any], then: Callable[[Any, Exception | None], None]) -> None:
        raise AssertionError

    Authorizer(Service(), authorize, told.append).decide("s%65cret", PEER, no_wait, reasons.append)
    return reasons[0], told


def test_true_lets_the_peer_in_and_the_name_has_one_spelling() -> None:
    """An escape does not pass the function by."""
    assert outcome(lambda principal, name: (principal, name) == ("alice", "secret")) == ("", [])


@pytest.mark.parametrize("verdict", [False, None, 1, "yes"])
def test_everything_but_true_refuses(verdict: object) -> None:
    """A function that forgets to return refuses."""
    assert outcome(lambda *_: verdict) == ("authorize refused it", [])


def test_an_exception_refuses_and_is_reported_unless_it_means_a_refusal() -> None:
    """A peer that asks again and again must not fill the log."""

    def deny(*_: object) -> bool:
        raise NotAvailable("no")

    def fail(*_: object) -> bool:
        raise ValueError("a secret")

    assert outcome(deny) == ("authorize raised NotAvailable", [])
    reason, told = outcome(fail)
    assert reason == "authorize raised ValueError"
    assert len(told) == 1


def test_an_awaitable_is_waited_for() -> None:
    """The outcome of the awaitable decides."""
    reasons: list[str] = []

    class Later:
        def __await__(self) -> Any:
            yield

    def wait(awaitable: Awaitable[Any], then: Callable[[Any, Exception | None], None]) -> None:
        then(True, None)
        then(None, ValueError("x"))

    Authorizer(Service(), lambda *_: Later(), lambda _: None).decide(
        "a", PEER, wait, reasons.append
    )
    assert reasons == ["", "authorize raised ValueError"]
