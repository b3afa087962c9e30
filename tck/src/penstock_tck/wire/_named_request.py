"""The data of a request by name, encoded for the checking side: correct, or with a false length.

penstock's own encoder is not used: a mistake in it would go unnoticed here.
"""

from typing import Final

MARK: Final = b"\xff\x72\x71\x00"

PAYLOADS: Final = (b"a payload", b"\xff\x00 no text", b"")
"""Payloads that an echo must return unchanged:
text, bytes that do not decode as text, and an empty one.
"""


def named_request(name: str | bytes, payload: bytes = b"", *, missing: int = 0) -> bytes:
    """Return the mark, the length of the name, the name and the payload. The length says
    `missing` bytes more than the name has.
    """
    encoded = name.encode() if isinstance(name, str) else name
    return MARK + (len(encoded) + missing).to_bytes(2) + encoded + payload
