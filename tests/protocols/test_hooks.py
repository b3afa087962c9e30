"""The protocols that penstock ships are offered through the hook that plugins use."""

from penstock.protocols import penstock_dialects
from penstock.spi import build_registry


def test_the_registry_contains_the_protocols_that_the_hook_offers() -> None:
    """The entry point of penstock leads to them, and their names are those in URLs."""
    registry = build_registry(environ={})
    assert [offer.name for offer in penstock_dialects()] == ["rsio", "reactivesocket"]
    assert set(registry.dialects) >= {"rsio", "reactivesocket"}
    assert registry.problems == ()
