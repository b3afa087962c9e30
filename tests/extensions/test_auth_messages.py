"""The bytes of credentials: golden bytes, and each way in which a body can be broken."""

import pytest

from penstock.api import Credentials
from penstock.extensions._auth_messages import decode_credentials, encode_credentials


@pytest.mark.parametrize(
    ("credentials", "body"),
    [
        (Credentials.bearer("token"), "06 62 65 61 72 65 72 05 74 6f 6b 65 6e"),
        (Credentials.basic("a", "b"), "05 62 61 73 69 63 03 61 3a 62"),
        (Credentials("mtls"), "04 6d 74 6c 73 00"),
        (Credentials("x", bytes(128)), "01 78 80 01" + " 00" * 128),
    ],
)
def test_golden_bytes(credentials: Credentials, body: str) -> None:
    """The table of docs/reference/rsio.md."""
    assert encode_credentials(credentials) == bytes.fromhex(body)
    assert decode_credentials(bytes.fromhex(body)) == (
        credentials.scheme.encode(),
        credentials.data,
    )


@pytest.mark.parametrize(
    "body", ["", "01", "01 78", "01 78 01", "01 78 00 00", "81 00 78 00", "ff ff ff ff 7f", "00"]
)
def test_a_broken_body_is_told_from_an_empty_field(body: str) -> None:
    """It is cut, followed by bytes, or has a length that is not the shortest or is too long."""
    assert decode_credentials(bytes.fromhex(body)) is None
    assert decode_credentials(b"\0\0") == (b"", b"")
