"""The front door of builtin passes on each name of `_on_trio`."""

from penstock import builtin
from penstock.builtin import _on_trio


def test_each_name_is_passed_on() -> None:
    """`penstock.builtin` has each name, and the same object."""
    assert set(_on_trio.__all__) < set(builtin.__all__)
    assert all(getattr(builtin, name) is getattr(_on_trio, name) for name in _on_trio.__all__)
