"""The attempts of a client to connect, told to the observers."""

from penstock.api import ConnectionLost
from penstock.client import Attempts
from penstock.spi import Events, Reconnect, ReconnectEvent

LOST = ConnectionLost("lost")


def attempts(policy: Reconnect | None) -> tuple[Attempts, list[tuple[str, int]]]:
    seen: list[tuple[str, int]] = []

    def note(event: ReconnectEvent) -> None:
        seen.append((event.stage.value, event.attempt))

    return Attempts(policy, Events.of([("test", "penstock_reconnect", note)]), "tcp://h:1"), seen  # type: ignore[list-item]  # one kind


def test_without_a_policy_nothing_is_tried_again() -> None:
    """And nothing is reported."""
    made, seen = attempts(None)
    made.begin()
    assert made.pause_after(LOST, opened_at=None, now=0.0) is None
    made.on_open()
    assert seen == []


def test_a_connection_that_stayed_sets_the_count_back() -> None:
    """One that was lost at once does not."""
    made, seen = attempts(Reconnect(attempts=2, first=1.0, healthy=10.0, chance=lambda: 1.0))
    made.begin()
    made.on_open()
    assert made.pause_after(LOST, opened_at=0.0, now=5.0) == 1.0
    made.begin()
    made.on_open()
    assert made.pause_after(LOST, opened_at=10.0, now=20.0) == 1.0
    made.begin()
    assert made.pause_after(LOST, opened_at=None, now=20.0) == 1.0
    made.begin()
    assert made.pause_after(LOST, opened_at=None, now=20.0) is None
    stages = [stage for stage, _ in seen]
    assert stages == ["lost", "retrying", "back", "lost", "retrying", "retrying", "given up"]
