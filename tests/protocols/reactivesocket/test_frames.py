"""The records of frames: they cannot be changed, and are built by name."""

from typing import get_args

import attrs
import pytest

from penstock.protocols import reactivesocket as rs
from tests.protocols.reactivesocket._golden_bytes import GOLDEN

KINDS = get_args(rs.Frame)


def test_each_kind_of_frame_has_golden_bytes() -> None:
    """The table that the tests of the codec use is complete."""
    assert {type(frame) for frame, _ in GOLDEN.values()} == set(KINDS)


@pytest.mark.parametrize("frame", [frame for frame, _ in GOLDEN.values()], ids=GOLDEN)
def test_a_frame_cannot_be_changed(frame: rs.Frame) -> None:
    """It can be kept, compared and hashed, and has slots."""
    names = [field.name for field in attrs.fields(type(frame))]
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        setattr(frame, names[0], None)
    assert hash(frame) == hash(type(frame)(**{name: getattr(frame, name) for name in names}))
    assert not hasattr(frame, "__dict__")


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_frame_is_built_by_name(kind: type) -> None:
    """A field without its name raises TypeError."""
    with pytest.raises(TypeError):
        kind(1)


def test_a_response_is_whole_by_default() -> None:
    """B and E are set, C is not."""
    assert rs.Response(stream_id=1, data=b"x") == rs.Response(
        stream_id=1, begin=True, end=True, complete=False, data=b"x"
    )
