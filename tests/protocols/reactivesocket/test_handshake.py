"""The checks of a SETUP, the error that refuses one, and the frames of extensions."""

import pytest

from penstock.api import Limits, ProtocolError, Rejected, Role
from penstock.extensions import Keepalive
from penstock.protocols.reactivesocket import Ext, Setup, encode
from penstock.protocols.reactivesocket._handshake import (
    announcement,
    check_setup,
    extended_type,
    extension_message,
    setup_refusal,
)
from tests.protocols.reactivesocket._pair import RawSocket

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
