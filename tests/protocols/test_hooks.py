"""What we ship is offered through the hook that everybody uses."""

from penstock.plugins import build_registry
from penstock.protocols import penstock_dialects


def test_the_dialects_that_are_here_are_found_as_any_others_are() -> None:
    """By an entry point, under the names that stand in URLs."""
    registry = build_registry(environ={})
    assert [offer.name for offer in penstock_dialects()] == ["rsio", "reactivesocket"]
    assert set(registry.dialects) >= {"rsio", "reactivesocket"}
    assert registry.problems == ()
