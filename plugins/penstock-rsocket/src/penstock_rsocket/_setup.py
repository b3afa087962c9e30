"""The SETUP of a client: what the program may say in it, and how metadata is read and written by
what it says.
"""

from typing import Final, Self

from penstock.api import UsageError
from penstock_rsocket._metadata import (
    AUTHENTICATION,
    COMPOSITE,
    ROUTING,
    decode_route,
    encode_composite,
    encode_route,
    find_entry,
)

OCTETS: Final = "application/octet-stream"


class SetupData(bytes):
    """The data of a SETUP, and what a client says beside it:
    ``penstock.connect(url, setup=SetupData(data_type="application/json"))``.

    `data_type` is the MIME type of the data of all requests and answers, and `metadata_type` that
    of their metadata. `metadata` are further entries of composite metadata for the SETUP, as
    `encode_composite` returns them. With `leases` each side sends no request without a lease of the
    other one.
    """

    # Bytes: the data is all that most protocols know, and the connection hands it to its dialect
    # without looking at it.
    data_type: str
    metadata_type: str
    metadata: bytes
    leases: bool

    def __new__(
        cls,
        data: bytes = b"",
        *,
        data_type: str = OCTETS,
        metadata_type: str = COMPOSITE,
        metadata: bytes = b"",
        leases: bool = False,
    ) -> Self:
        """Make the data. Raises UsageError for a MIME type that a SETUP cannot carry."""
        for name, value in (("data_type", data_type), ("metadata_type", metadata_type)):
            if not value.isascii() or not 0 < len(value) <= 255:  # one byte of length
                raise UsageError(f"{name}={value[:200]!a}; a MIME type has 1 to 255 ASCII letters")
        made = super().__new__(cls, data)
        made.data_type, made.metadata_type, made.metadata = data_type, metadata_type, metadata
        made.leases = leases
        return made

    def __repr__(self) -> str:
        # Often a secret, as any setup data.
        return f"<setup data of {len(self)} bytes, {self.data_type}>"


class MetadataForm:
    """How the metadata of the requests on one connection is read and written."""

    __slots__ = ("_type",)

    def __init__(self, metadata_type: str) -> None:
        self._type = metadata_type

    def route_of(self, content: bytes | None) -> str | None:
        """Return the route in the metadata of a request; None without one.
        Raises ProtocolError.
        """
        if not content:
            return None
        if self._type == COMPOSITE:
            found = find_entry(content, ROUTING)
            return None if found is None else decode_route(found)
        return decode_route(content) if self._type == ROUTING else None

    def with_route(self, route: str, content: bytes | None) -> bytes:
        """Return the metadata of a request with a route, and with `content` beside it.
        Raises UsageError if the two do not go together.
        """
        encoded = encode_route(route)
        if self._type == COMPOSITE:
            return encode_composite([(ROUTING, encoded)]) + (content or b"")
        if self._type == ROUTING and not content:
            return encoded
        raise UsageError(
            f"a request with the name {route!r}: the metadata of this connection is "
            f"{self._type!r}, which has no place for it; connect with SetupData() as it is"
        )

    def credentials_of(self, content: bytes | None) -> bytes | None:
        """Return the content of the credentials in the metadata of a SETUP; None without some.
        Raises ProtocolError.
        """
        if not content:
            return None
        if self._type == COMPOSITE:
            return find_entry(content, AUTHENTICATION)
        return content if self._type == AUTHENTICATION else None
