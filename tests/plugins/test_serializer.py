"""What a serializer must offer."""

import pytest

from penstock.plugins import Serializer


def test_a_serializer_that_lacks_a_half_cannot_be_made() -> None:
    """Whoever forgets `loads` hears of it at once, and not from the first subscriber."""

    class Half(Serializer):
        name = "half"

        def dumps(self, element: object, /) -> bytes:
            return b""

    with pytest.raises(TypeError, match="loads"):
        Half()  # type: ignore[abstract]  # that it cannot be done is the point


def test_a_serializer_tells_its_name() -> None:
    """What a log line shows."""

    class Whole(Serializer):
        name = "whole"

        def dumps(self, element: object, /) -> bytes:
            return b""

        def loads(self, data: bytes, /) -> object:
            return 1

    assert repr(Whole()) == "<serializer whole>"
