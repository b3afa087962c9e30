"""The interface of a serializer."""

import pytest

from penstock.spi import Serializer


def test_a_serializer_without_loads_cannot_be_instantiated() -> None:
    """The author finds the mistake at once, and not when the first element arrives."""

    class Half(Serializer):
        name = "half"

        def dumps(self, element: object, /) -> bytes:
            return b""

    with pytest.raises(TypeError, match="loads"):
        Half()  # type: ignore[abstract]  # that it cannot be done is the point


def test_the_repr_shows_the_name() -> None:
    """It appears in log lines."""

    class Whole(Serializer):
        name = "whole"

        def dumps(self, element: object, /) -> bytes:
            return b""

        def loads(self, data: bytes, /) -> object:
            return 1

    assert repr(Whole()) == "<serializer whole>"


def test_elements_are_loaded_together_in_order() -> None:
    """A serializer need not define it."""

    class Whole(Serializer):
        name = "whole"

        def dumps(self, element: object, /) -> bytes:
            return b""

        def loads(self, data: bytes, /) -> object:
            return data.decode()

    assert Whole().loads_many([b"a", b"b"]) == ["a", "b"]
    assert Whole().loads_many([]) == []
