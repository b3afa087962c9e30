"""What the first bytes of a connection tell."""

import pytest

from penstock.protocols import reactivesocket
from penstock.protocols.reactivesocket import FrameType, opens


def first(kind: int, *, version: int = 0, flags: int = 0, length: int = 16) -> bytes:
    return length.to_bytes(4) + bytes((version, flags)) + kind.to_bytes(2) + bytes(8)


@pytest.mark.parametrize("kind", FrameType, ids=lambda kind: kind.name)
def test_every_frame_that_there_is_is_told_by_its_eighth_byte_and_not_before(kind: FrameType) -> None:
    """By its fourth where the transport knows its length; whatever its flags, and however long it is, below 16 MiB."""
    for length in (0, 16, 2**24 - 1):
        data = first(kind, flags=0xFF, length=length)
        assert [opens(data[:size]) for size in range(10)] == [None] * 8 + [True] * 2
    assert [opens(data[4:][:size], framed=True) for size in range(6)] == [None] * 4 + [True] * 2


@pytest.mark.parametrize("kind", sorted({0, 2, 4, 0x34, 0x30, 0xFFFE, 0x0100, 0x1300}))
def test_a_type_that_there_is_not_is_another_protocol(kind: int) -> None:
    """RSocket 1.0's SETUP and RESUME read like 4 and 0x34."""
    assert opens(first(kind)) is False
    assert opens(first(kind)[4:], framed=True) is False


def test_of_another_version_a_setup_alone_is_understood() -> None:
    """What else that version has is not known here."""
    assert opens(first(FrameType.SETUP, version=1)) is True
    assert opens(first(FrameType.REQUEST_STREAM, version=1)) is False


@pytest.mark.parametrize("said", [b"GET / HTTP/1.1", b"\x16\x03\x01\0\xa5\x01\0\0", b"\x01\0\0\0\0\0\0\x13", b"\x01"])
def test_a_first_byte_that_is_not_zero_is_enough(said: bytes) -> None:
    """HTTP, TLS, RS.io."""
    assert opens(said) is False


def test_what_is_encoded_here_is_recognised() -> None:
    """On either kind of transport."""
    for framed in (False, True):
        assert opens(reactivesocket.encode(reactivesocket.Setup(data=b"cap"), framed=framed), framed=framed)
        assert opens(reactivesocket.encode(reactivesocket.Cancel(stream_id=1), framed=framed), framed=framed)
