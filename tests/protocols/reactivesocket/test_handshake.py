"""The first bytes of a client, the checks of a SETUP, and the frames of extensions."""

import pytest

from penstock.api import Limits, ProtocolError, Rejected, Role
from penstock.extensions import Keepalive
from penstock.protocols import reactivesocket
from penstock.protocols.reactivesocket import Ext, FrameType, Setup, encode, opens
from penstock.protocols.reactivesocket._handshake import (
    announcement,
    check_setup,
    extended_type,
    extension_message,
    setup_refusal,
)
from tests.protocols.reactivesocket._pair import RawSocket

# --- first bytes


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


# --- a SETUP


LIMITS = Limits(preauth_bytes=64)


def test_a_setup_of_version_0_on_stream_0_is_accepted() -> None:
    """The largest data that fits into `preauth_bytes` is also accepted."""
    room = LIMITS.preauth_bytes - len(encode(Setup(data=b"")))
    check_setup(0, 0, b"x" * room, LIMITS)


@pytest.mark.parametrize(
    ("version", "stream_id", "data", "reason"),
    [(1, 0, b"", "version 0"), (0, 3, b"", "protocol:setup"), (0, 0, b"x" * 64, "limit:hello")],
    ids=["another version", "a stream", "too much data"],
)
def test_another_setup_is_refused_with_its_reason(
    version: int, stream_id: int, data: bytes, reason: str
) -> None:
    """The reason is what the client is told."""
    with pytest.raises(ProtocolError) as caught:
        check_setup(version, stream_id, data, LIMITS)
    assert caught.value.reason == reason


def test_a_refusal_never_says_that_nothing_was_done() -> None:
    """A server may have accepted the SETUP in silence and acted on requests."""
    refusal = setup_refusal("wrong token")
    assert isinstance(refusal, Rejected)
    assert "wrong token" in str(refusal)
    assert "may have been processed" in str(refusal)


def test_a_reason_that_only_accepted_clients_get_is_not_a_refusal() -> None:
    """`limit:pings` is given after the SETUP was accepted."""
    assert setup_refusal("limit:pings") is None


def test_an_announcement_is_an_ext_frame_that_may_be_ignored() -> None:
    """A peer without the extension must not end the connection for it."""
    assert announcement(7) == encode(Ext(stream_id=0, ignore=True, ext_type=0x700, data=b""))


def test_the_extended_type_of_a_message_has_the_extension_and_the_code() -> None:
    """The bytes are those of the table in docs/reference/reactivesocket.md."""
    extension = Keepalive()
    assert announcement(1).hex() == "000000140080ffff000000000000000000000100"
    assert (
        extension_message(extension, 0x40, b"ping").hex()
        == "000000180080ffff00000000000000000000014070696e67"
    )
    assert extended_type(200, 0x60) == 0x0000C860


def test_an_extension_whose_id_does_not_fit_is_not_announced() -> None:
    """The id has 24 bits there, and 32 in a hello of RS.io."""

    class Large(Keepalive):
        id = 1 << 24

    raw = RawSocket(Role.CLIENT, extensions=[Large()])
    assert raw.receive() == [Setup()]
