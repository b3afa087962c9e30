"""The data of a request by name: a name and a payload in one piece of bytes,
the same in every protocol.

The layout::

    ff 72 71 00   4 bytes: the mark; its last byte is the version of the layout
    length        2 bytes, the high byte first: the bytes of the name
    name          UTF-8
    payload       the rest, perhaps nothing

The byte ``ff`` occurs in no UTF-8, so such data is never the name of a publisher.
"""

from typing import Final

from penstock.api._errors import UsageError

MARK: Final = b"\xffrq\x00"
"""The first bytes of the data. Requests whose meaning is up to the application must begin in
another way.
"""

FIRST_BYTE: Final = MARK[:1]
"""Tells most other data apart: one byte to look at."""

LENGTH_SIZE: Final = 2
HEADER_SIZE: Final = len(MARK) + LENGTH_SIZE
"""Bytes before the name."""

LONGEST_NAME: Final = (1 << 8 * LENGTH_SIZE) - 1


def encode_named_request(name: str, payload: bytes) -> bytes:
    """Return the data of a request by name.
    Raises UsageError for a name that is too long, or has no UTF-8.
    """
    try:
        encoded = name.encode()
    except UnicodeEncodeError:
        raise UsageError(
            f"{name[:200]!a} cannot be the name of a request: it holds half a character, which has "
            "no UTF-8"
        ) from None
    if len(encoded) > LONGEST_NAME:
        raise UsageError(
            f"the name of a request has {len(encoded):,} bytes; {LONGEST_NAME:,} is the most"
        )
    return b"".join((MARK, len(encoded).to_bytes(LENGTH_SIZE, "big"), encoded, payload))


def decode_named_request(data: bytes) -> tuple[str, bytes] | None:
    """Return the name and the payload, or None for data of another form."""
    if not data.startswith(MARK):
        return None
    end = HEADER_SIZE + int.from_bytes(data[len(MARK) : HEADER_SIZE], "big")
    if len(data) < end or len(data) < HEADER_SIZE:
        return None
    try:
        return data[HEADER_SIZE:end].decode(), data[end:]
    except UnicodeDecodeError:
        return None
