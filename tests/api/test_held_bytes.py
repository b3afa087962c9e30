"""The optional interface of subscribers that keep elements."""

from penstock.api import HoldsBytes, held_of


class Keeper:
    """Keeps seven bytes."""

    def held(self) -> int:
        return 7


def test_held_is_found_if_the_subscriber_has_it() -> None:
    """A subscriber without it, and none at all, hold nothing that could be counted."""
    keeper: HoldsBytes = Keeper()
    held = held_of(keeper)
    assert held is not None
    assert held() == 7
    assert held_of(object()) is None
    assert held_of(None) is None
