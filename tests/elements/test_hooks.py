"""The offers of the plugin ``elements``."""

from penstock.elements import penstock_serializers


def test_each_serializer_is_offered_once() -> None:
    """The hook returns one serializer for each name."""
    assert sorted(serializer.name for serializer in penstock_serializers()) == [
        "bytes",
        "json",
        "text",
    ]
