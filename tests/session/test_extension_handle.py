"""The calls of an extension to its connection that concern the peer: its identity, its
principal, and waiting for a decision.
"""

import pytest

from penstock.api import ProtocolError, UsageError
from penstock.session import ConnectionState
from tests.session._outside_extension import Outsider
from tests.session._pair import Pair


def opened() -> tuple[Pair, Outsider]:
    there = Outsider()
    pair = Pair(extensions=[Outsider()], server_extensions=[there])
    pair.settle()
    return pair, there


def test_an_extension_knows_the_peer_when_it_opens() -> None:
    """And whether clients of the protocol introduce themselves."""
    _, there = opened()
    assert there.named("open") == [("the peer",)]
    assert there.link.has_introductions is False


def test_an_extension_gets_the_outcome_of_what_it_waits_for() -> None:
    """The delegate awaits the object, and calls the extension with the result."""
    pair, there = opened()
    outcomes = []
    there.link.await_result("awaitable", lambda result, error: outcomes.append((result, error)))  # type: ignore[arg-type]  # never awaited
    ((awaitable, then),) = pair.server.awaited
    assert awaitable == "awaitable"
    then("result", None)
    assert outcomes == [("result", None)]


@pytest.mark.parametrize(
    ("error", "reason"),
    [(ProtocolError("x", reason="protocol:x"), "protocol:x"), (RuntimeError("x"), "internal")],
)
def test_an_extension_that_raises_with_the_outcome_ends_its_connection(
    error: Exception, reason: str
) -> None:
    """The exception does not reach the task that awaited."""
    pair, there = opened()

    def fail(_result: object, _error: Exception | None) -> None:
        raise error

    there.link.await_result("awaitable", fail)  # type: ignore[arg-type]  # never awaited
    pair.server.awaited[0][1](None, None)
    assert pair.server.session.close_reason[0] == reason


def test_a_late_refusal_of_an_open_connection_ends_it_at_once() -> None:
    """The time in `at` counts for a peer that is not let in yet."""
    pair, there = opened()
    there.link.break_off("private", at=10.0)
    assert pair.server.session.state is ConnectionState.CLOSING


def test_a_link_sends_the_codes_of_its_extension_only() -> None:
    """Another code would be read by another extension."""
    _, there = opened()
    with pytest.raises(UsageError):
        there.link.send(0x61, b"")
