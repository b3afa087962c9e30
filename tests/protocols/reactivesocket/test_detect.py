"""The detection of ReactiveSocket by the first bytes of a connection."""

import pytest

from penstock.protocols import reactivesocket
from penstock.protocols.reactivesocket import FrameType, opens


def first_bytes_of(kind: int, *, version: int = 0, flags: int = 0, length: int = 16) -> bytes:
    return length.to_bytes(4) + bytes((version, flags)) + kind.to_bytes(2) + bytes(8)


@pytest.mark.parametrize("kind", FrameType, ids=lambda kind: kind.name)
def test_each_type_of_frame_is_recognised_with_its_eighth_byte(kind: FrameType) -> None:
    """With its fourth byte without a length.
    Flags do not matter, nor does a length below 16 MiB.
    """
    for length in (0, 16, 2**24 - 1):
        data = first_bytes_of(kind, flags=0xFF, length=length)
        assert [opens(data[:size]) for size in range(10)] == [None] * 8 + [True] * 2
    assert [opens(data[4:][:size], framed=True) for size in range(6)] == [None] * 4 + [True] * 2


@pytest.mark.parametrize("kind", sorted({0, 2, 4, 0x34, 0x30, 0xFFFE, 0x0100, 0x1300}))
def test_an_unknown_type_is_another_protocol(kind: int) -> None:
    """SETUP and RESUME of RSocket 1.0 read as the types 4 and 0x34."""
    assert opens(first_bytes_of(kind)) is False
    assert opens(first_bytes_of(kind)[4:], framed=True) is False


def test_only_the_setup_of_another_version_is_recognised() -> None:
    """The other frames of that version are not known here."""
    assert opens(first_bytes_of(FrameType.SETUP, version=1)) is True
    assert opens(first_bytes_of(FrameType.REQUEST_STREAM, version=1)) is False


@pytest.mark.parametrize(
    "first_bytes",
    [b"GET / HTTP/1.1", b"\x16\x03\x01\0\xa5\x01\0\0", b"\x01\0\0\0\0\0\0\x13", b"\x01"],
)
def test_a_first_byte_that_is_not_zero_is_another_protocol(first_bytes: bytes) -> None:
    """HTTP, TLS and RS.io are recognised by their first byte."""
    assert opens(first_bytes) is False


def test_encoded_frames_are_recognised() -> None:
    """With and without a length."""
    for framed in (False, True):
        assert opens(
            reactivesocket.encode(reactivesocket.Setup(data=b"cap"), framed=framed), framed=framed
        )
        assert opens(
            reactivesocket.encode(reactivesocket.Cancel(stream_id=1), framed=framed), framed=framed
        )
