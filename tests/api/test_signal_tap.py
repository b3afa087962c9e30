"""The numbers of signals stand in recorded files, and an object with the two members is a tap."""

from penstock.api import SignalKind, SignalTap
from tests.streams.ops.promises import NoTaps


def test_the_numbers_of_signals_do_not_change() -> None:
    """A file that was recorded years ago means the same."""
    assert [(kind.name, int(kind)) for kind in SignalKind] == [
        ("ON_SUBSCRIBE", 1),
        ("REQUEST", 2),
        ("ON_NEXT", 3),
        ("CANCEL", 4),
        ("ON_COMPLETE", 5),
        ("ON_ERROR", 6),
    ]


def test_a_tap_is_known_by_its_members() -> None:
    """No base class is needed."""
    assert isinstance(NoTaps(), SignalTap)
    assert not isinstance("a text", SignalTap)
