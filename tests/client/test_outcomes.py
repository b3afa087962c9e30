"""What extensions wait for on a connection without tasks, and the examination of a server
that uses it.
"""

from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from penstock.api import AuthRefused, Credentials, UsageError
from penstock.client import AnswerBuffer, Endpoint
from penstock.client._outcomes import Outcomes, deferred
from penstock.spi import PeerIdentity
from tests.client._settings import HELLO, endpoint, settings

HELLO_WITH_AUTH = bytes.fromhex("02000102")
ACCEPTED = bytes.fromhex("430101")
SHOWN = bytes.fromhex("42 09 06") + b"bearer" + b"\x01s"
"""The server's credentials, a token of one byte."""
SUBSCRIBE = bytes.fromhex("10 01 61 00 01")


class Waits:
    """An awaitable that never ends by itself, and fails if it is told to stop."""

    def __init__(self, failure: Exception | None = None) -> None:
        self._failure = failure

    def __await__(self) -> Iterator[None]:
        try:
            yield
        except GeneratorExit:
            if self._failure is not None:
                raise self._failure from None


def outcome_of(awaitable: Awaitable[Any]) -> tuple[Any, Exception | None]:
    outcomes, got = Outcomes(), []
    outcomes.add(awaitable, lambda result, error: got.append((result, error)))
    assert outcomes
    outcomes.run()
    assert not outcomes
    return got[0]


def examined(
    authenticate: Callable[..., Any],
    *,
    messages: bytes = HELLO_WITH_AUTH + ACCEPTED + SHOWN,
    **options: Any,
) -> tuple[Endpoint, AnswerBuffer]:
    """Return a client that has got the server's credentials at the time 1, and a request of it,
    which waits.
    """
    made, answer = endpoint(extensions=(), authenticate=authenticate, **options), AnswerBuffer()
    made.subscribe("a", answer)
    made.receive(messages, 1.0)
    return made, answer


# --------------------------------------------------------------------------------------- awaitables


@pytest.mark.parametrize("failure", [None, ValueError("no")])
def test_an_awaitable_that_does_not_wait_has_an_outcome(failure: Exception | None) -> None:
    """Its result, or what it raises."""

    async def answer() -> str:
        if failure is not None:
            raise failure
        return "yes"

    assert outcome_of(answer()) == ((None, failure) if failure else ("yes", None))


@pytest.mark.parametrize("failure", [None, ValueError("stop")])
def test_an_awaitable_that_waits_is_stopped(failure: Exception | None) -> None:
    """Its outcome is an error: no task is here. If it raises meanwhile, that is the error."""
    result, error = outcome_of(Waits(failure))
    assert result is None
    assert error is failure if failure else isinstance(error, UsageError)


def test_an_object_that_cannot_be_awaited_is_an_error() -> None:
    """An extension of a plugin may give anything."""
    assert isinstance(outcome_of(3)[1], AttributeError)  # type: ignore[arg-type]  # the mistake that is tested


def test_awaitables_that_are_not_run_are_closed() -> None:
    """Python warns of a coroutine that was never awaited, and warnings are errors here."""
    outcomes = Outcomes()
    outcomes.add(deferred(print)(), pytest.fail)
    outcomes.add(Waits(), pytest.fail)
    outcomes.close()
    assert not outcomes


# ------------------------------------------------------------------------- `connect(authenticate=)`


@pytest.mark.parametrize("is_async", [False, True])
def test_the_server_is_examined_before_any_request(is_async: bool) -> None:
    """Not while bytes are acted on, but in `run_publishers`.
    The result of the function is the principal.
    """
    seen: list[Any] = []

    def look(scheme: str, data: bytes, peer: PeerIdentity) -> str:
        seen.append((scheme, data, peer.address))
        return "the exchange"

    async def look_async(*arguments: Any) -> str:
        return look(*arguments)

    made, _ = examined(look_async if is_async else look, credentials=Credentials.bearer("x"))
    assert not seen
    assert made.has_work
    assert SUBSCRIBE not in made.take()
    made.run_publishers(lambda: 1.0)
    assert seen == [("bearer", b"s", "test")]
    assert made.identity.principal == "the exchange"
    assert made.take() == ACCEPTED + SUBSCRIBE


@pytest.mark.parametrize("verdict", [None, False, ValueError("broken"), Waits()])
def test_a_server_that_is_refused_gets_no_request(verdict: Any) -> None:
    """It gets the goodbye `auth` 250 ms after its credentials, and the request of this side
    raises AuthRefused. A failure is reported.
    """
    heard: list[Exception] = []

    def look(*_arguments: Any) -> Any:
        if isinstance(verdict, Exception):
            raise verdict
        return verdict

    made, answer = examined(look, on_violation=heard.append)
    made.take()
    assert made.tick(1.0) != 1.25
    made.run_publishers(lambda: 1.0)
    assert made.tick(1.0) == 1.25
    assert not made.has_output
    made.tick(1.25)
    assert made.take() == bytes.fromhex("0304") + b"auth"
    assert answer.is_over
    with pytest.raises(AuthRefused) as caught:
        answer.take()
    assert not caught.value.processed
    assert [type(error) for error in heard] == (
        [ValueError] if isinstance(verdict, Exception) else [UsageError] if verdict else []
    )


def test_a_server_without_the_extension_is_examined_by_its_transport() -> None:
    """With an empty scheme over plain TCP.
    Nothing more is sent to it if the function refuses it.
    """
    seen: list[tuple[Any, ...]] = []
    made, _ = examined(lambda *arguments: seen.append(arguments[:2]), messages=HELLO)
    made.take()
    made.run_publishers(lambda: 1.0)
    assert seen == [("", b"")]
    made.tick(1.25)
    assert made.take() == bytes.fromhex("0304") + b"auth"


def test_an_examination_does_not_outlive_its_connection() -> None:
    """A function that was not called yet is not called."""
    made, _ = examined(pytest.fail)
    made.release()
    assert not made.has_work


def test_an_outcome_that_comes_after_the_goodbye_changes_nothing() -> None:
    """The owner's task may end late."""
    later: list[Callable[[Any, Exception | None], None]] = []

    def keep(awaitable: Any, then: Callable[[Any, Exception | None], None]) -> None:
        awaitable.close()
        later.append(then)

    made = Endpoint(
        settings(extensions=(), authenticate=pytest.fail),
        PeerIdentity(address="test"),
        0.0,
        await_with=keep,
    )
    made.receive(HELLO_WITH_AUTH + ACCEPTED + SHOWN, 1.0)
    made.close()
    made.take()
    later[0]("the exchange", None)
    assert made.identity.principal is None
    assert not made.has_output


def test_what_cannot_be_called_is_refused_at_once() -> None:
    """At the call of `connect`."""
    with pytest.raises(UsageError, match="give a function of a scheme"):
        settings(authenticate="secret")
