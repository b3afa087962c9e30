"""A name, and what makes the thing."""

from penstock.plugins import Factory


def test_an_offer_carries_its_factory() -> None:
    """Nothing is made before it is wanted."""
    made = []
    offer = Factory(name="x", make=lambda: made.append(1) or "thing")
    assert made == []
    assert offer.make() == "thing"
    assert (offer.id, offer.summary) == (None, "")
