"""The front door of plugins passes on each name of `_on_trio`."""

from penstock import spi
from penstock.spi import _on_trio


def test_each_name_is_passed_on() -> None:
    """`penstock.spi` has each name, and the same object."""
    own = set(spi._OWN_ON_TRIO)
    assert set(_on_trio.__all__) - own < set(spi.__all__)
    assert own < set(_on_trio.__all__)
    assert all(getattr(spi, name) is getattr(_on_trio, name) for name in _on_trio.__all__)
