"""The records of frames: they hold data, never change, and are built by name."""

from typing import get_args

import attrs
import pytest

from penstock.protocols import reactivesocket as rs
from tests.protocols.reactivesocket._golden_bytes import GOLDEN

KINDS = get_args(rs.Frame)


def test_each_kind_of_frame_has_golden_bytes() -> None:
    """None was forgotten in the table that the codec is driven from."""
    assert {type(frame) for frame, _ in GOLDEN.values()} == set(KINDS)


@pytest.mark.parametrize("frame", [frame for frame, _ in GOLDEN.values()], ids=GOLDEN)
def test_a_frame_never_changes(frame: rs.Frame) -> None:
    """It may be kept, compared and hashed."""
    names = [field.name for field in attrs.fields(type(frame))]
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        setattr(frame, names[0], None)
    assert hash(frame) == hash(type(frame)(**{name: getattr(frame, name) for name in names}))
    assert not hasattr(frame, "__dict__")


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_frame_is_built_by_name(kind: type) -> None:
    """A number at a place says nothing."""
    with pytest.raises(TypeError):
        kind(1)


def test_a_response_is_whole_unless_it_says_otherwise() -> None:
    """The common one is the short one to write."""
    assert rs.Response(stream_id=1, data=b"x") == rs.Response(stream_id=1, begin=True, end=True, complete=False, data=b"x")
