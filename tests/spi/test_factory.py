"""The record that offers a dialect, an encoding or an extension."""

from penstock.spi import Factory


def test_a_factory_makes_nothing_before_it_is_called() -> None:
    """Id and summary are optional."""
    made = []
    factory = Factory(name="x", make=lambda: made.append(1) or "extension")
    assert made == []
    assert factory.make() == "extension"
    assert (factory.id, factory.summary) == (None, "")
