"""The connections of one worker, whose parent decides which of them have a place."""

from typing import Any

from penstock.api import Limits
from penstock.runtime import SharedAdmission, Slot
from penstock.spi import PeerIdentity


class FakeDoor:
    """A parent that hands over what it is given, and notes what it is told."""

    def __init__(self) -> None:
        self.handed: tuple[int, str] | None = None
        self.told: list[tuple[str, int]] = []

    def take(self) -> tuple[int, str] | None:
        handed, self.handed = self.handed, None
        return handed

    def __getattr__(self, name: str) -> Any:
        return lambda number: self.told.append((name.removeprefix("on_"), number))


def test_a_connection_whose_hello_has_come_is_not_cut() -> None:
    """The parent has asked for it before it knew the hello, and gives the place back."""
    fake: Any = FakeDoor()
    admission = SharedAdmission(Limits(), fake)
    cuts: list[str] = []
    admission.on_cut = lambda _place, reason: cuts.append(reason)
    places = []
    for number in (1, 2):
        fake.handed = number, ""
        place = admission.admit(PeerIdentity(address="test", host="192.0.2.1"), "tcp://here")
        assert isinstance(place, Slot)
        places.append(place)
    admission.on_hello(places[0])
    admission.cut(1, "places:address")
    admission.cut(2, "places:silent")
    assert cuts == ["places:silent"]
    assert [place.is_cancelled for place in places] == [False, True]
    assert fake.told == [("taken", 1), ("taken", 2), ("known", 1), ("closed", 2)]
