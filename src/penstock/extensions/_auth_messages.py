"""The bytes of credentials: a scheme and data, each after its length."""

from typing import Final

from penstock.api import Credentials
from penstock.extensions._fields import encode_field, read_field

CREDENTIALS: Final = 0x42
VERDICT: Final = 0x43
ACCEPTED: Final = b"\x01"


def encode_credentials(credentials: Credentials) -> bytes:
    """Return the body of a credentials message, which is also the data of a ReactiveSocket
    client's SETUP.
    """
    return encode_field(credentials.scheme.encode()) + encode_field(credentials.data)


def decode_credentials(body: bytes) -> tuple[bytes, bytes] | None:
    """Return the scheme and the data, or None for a body that cannot be read."""
    scheme, position = read_field(body, 0)
    data, end = read_field(body, position)
    return (scheme, data) if end == len(body) else None
