"""The decisions of a client when a connection opens, is lost or refused, when its server drains,
and when it gives up.
"""

from collections.abc import Callable

import pytest

from penstock.api import ConnectionLost, ProtocolError, Rejected
from penstock.client import NOW, GiveUp, Reconnector, TryAfter, may_reconnect
from penstock.spi import Events, Reconnect, ReconnectEvent

LOST = ConnectionLost("lost")
FULL = Rejected("full", processed=False, temporary=True)
REFUSED = Rejected("no")
POLICY = Reconnect(attempts=2, first=1.0, healthy=10.0, chance=lambda: 1.0)


def reconnector(policy: Reconnect | None = POLICY) -> tuple[Reconnector, list[ReconnectEvent]]:
    """Return a reconnector, and the events that observers hear."""
    seen: list[ReconnectEvent] = []
    events = Events.of([("test", "penstock_reconnect", seen.append)])  # type: ignore[list-item]  # one kind
    return Reconnector(policy, events, "tcp://h:1"), seen


def stages(seen: list[ReconnectEvent]) -> list[tuple[str, int]]:
    return [(event.stage.value, event.attempt) for event in seen]


def test_without_a_policy_nothing_is_tried_again() -> None:
    """Nothing is reported, and a request is not refused here: the connection has its own error."""
    made, seen = reconnector(None)
    made.on_attempt()
    made.on_away()
    assert not made.is_away
    assert made.on_lost(LOST, opened_at=None, now=0.0) == GiveUp(LOST)
    made.on_open()
    made.check()
    assert seen == []


def test_only_a_connection_that_stayed_sets_the_count_back() -> None:
    """One that was lost at once does not: its server must not be asked at full speed."""
    made, seen = reconnector()
    made.on_attempt()
    made.on_open()
    assert made.on_lost(LOST, opened_at=0.0, now=5.0) == TryAfter(1.0)
    made.on_attempt()
    made.on_open()
    assert made.on_lost(LOST, opened_at=10.0, now=20.0) == TryAfter(1.0)
    made.on_attempt()
    assert made.on_lost(LOST, opened_at=None, now=20.0) == TryAfter(1.0)
    made.on_attempt()
    assert made.on_lost(LOST, opened_at=None, now=20.0) == GiveUp(LOST)
    assert [stage for stage, _ in stages(seen)] == [
        "lost", "retrying", "back", "lost", "retrying", "retrying", "given up",
    ]  # fmt: skip


def test_observers_hear_of_the_attempt_that_a_wait_leads_to() -> None:
    """Its number, its wait, the address, and the error. A first attempt that fails has lost nothing."""
    made, seen = reconnector(Reconnect(attempts=3, first=0.5, chance=lambda: 1.0))
    for _ in range(3):
        made.on_attempt()
        made.on_lost(LOST, opened_at=None, now=0.0)
    assert stages(seen) == [("retrying", 2), ("retrying", 3), ("given up", 3)]
    assert [event.wait for event in seen] == [0.5, 1.0, 0.0]
    assert {(event.address, event.error) for event in seen} == {("tcp://h:1", LOST)}


@pytest.mark.parametrize(
    "error", [REFUSED, ProtocolError("broken", reason="protocol:type")], ids=["refused", "a fault"]
)
def test_a_refusal_for_good_is_final(error: Exception) -> None:
    """Nothing is reported: no attempt follows that observers could wait for. A later request gets a
    copy of the refusal.
    """
    made, seen = reconnector()
    assert made.on_lost(error, opened_at=0.0, now=1.0) == GiveUp(error)
    assert seen == []
    assert not made.is_away
    failure = made.failure()
    assert type(failure) is type(error)
    assert failure is not error
    with pytest.raises(type(error)):
        made.check()


def test_a_refusal_that_passes_is_tried_again() -> None:
    """The server has no room now."""
    made, _ = reconnector()
    made.on_attempt()
    assert made.on_lost(FULL, opened_at=None, now=0.0) == TryAfter(1.0)


def test_a_server_that_drains_is_left() -> None:
    """Requests wait at once, and the next connection is made as after a loss."""
    made, seen = reconnector()
    made.on_attempt()
    made.on_away()
    assert made.is_away
    assert made.on_lost(None, opened_at=0.0, now=60.0) == TryAfter(1.0)
    assert "the server shuts down" in str(seen[0].error)


def test_what_waits_is_called_when_there_is_a_connection() -> None:
    """Without a loss it is called at once. One that must wait again waits for the connection after this one."""
    made, _ = reconnector()
    called: list[str] = []
    made.when_connected(lambda: called.append("at once"))
    made.on_away()

    def wait_again() -> None:
        called.append("first")
        made.on_away()
        made.when_connected(lambda: called.append("again"))

    made.when_connected(wait_again)
    made.when_connected(lambda: called.append("second"))
    made.on_connected()
    assert called == ["at once", "first"]
    made.on_connected()
    assert sorted(called[2:]) == ["again", "second"]


@pytest.mark.parametrize(
    "end",
    [
        lambda made: made.give_up(LOST),
        lambda made: [
            made.on_attempt(),
            made.on_attempt(),
            made.on_lost(LOST, opened_at=None, now=0.0),
        ],
    ],
    ids=["the program leaves", "the last attempt failed"],
)
def test_a_client_that_has_given_up_does_not_begin_again(
    end: Callable[[Reconnector], object],
) -> None:
    """Waiting calls are made, and they and all later ones get the error."""
    made, seen = reconnector()
    called: list[bool] = []
    made.on_away()
    made.when_connected(lambda: called.append(made.is_away))
    end(made)
    assert called == [False]
    reported = len(seen)
    made.give_up(ConnectionLost("another"))
    made.on_away()
    assert not made.is_away
    assert isinstance(made.on_lost(LOST, opened_at=0.0, now=99.0), GiveUp)
    for _ in range(2):
        with pytest.raises(
            ConnectionLost, match="no further attempt to connect is made: lost"
        ) as caught:
            made.check()
        assert caught.value.__cause__ is LOST
    assert len(seen) == reported


def test_the_first_attempt_is_made_now() -> None:
    """The policy counts for the first connection as well."""
    assert NOW.seconds == 0


def test_a_loss_may_be_mended_and_so_may_a_lack_of_room() -> None:
    """The next connection would also meet a refusal and a fault."""
    assert may_reconnect(LOST)
    assert may_reconnect(FULL)
    assert not may_reconnect(REFUSED)
    assert not may_reconnect(ProtocolError("broken", reason="protocol:type"))
