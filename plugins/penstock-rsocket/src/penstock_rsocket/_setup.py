"""The SETUP of a client: the settings of the program in it, and the form of metadata that follows
from them.
"""

from typing import Final, Self

from penstock.api import ContentTypes, Model, Request, UsageError
from penstock_rsocket._metadata import (
    ACCEPTED_TYPES,
    AUTHENTICATION,
    COMPOSITE,
    DATA_TYPE,
    ROUTING,
    TRACING,
    decode_route,
    decode_types,
    encode_composite,
    encode_route,
    entries_of,
    find_entry,
)

OCTETS: Final = "application/octet-stream"

_READ_HERE: Final = frozenset({ROUTING, DATA_TYPE, ACCEPTED_TYPES, TRACING})
"""Kinds of metadata that decide where a request leads and how its data is read, and its trace."""


class SetupData(bytes):
    """The data of a SETUP, with the client's other settings:
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
        return cls.received(
            data,
            data_type=data_type,
            metadata_type=metadata_type,
            metadata=metadata,
            leases=leases,
        )

    @classmethod
    def received(
        cls, data: bytes, *, data_type: str, metadata_type: str, metadata: bytes, leases: bool
    ) -> Self:
        """Return what a client has said, legal or not."""
        made = super().__new__(cls, data)
        made.data_type, made.metadata_type, made.metadata = data_type, metadata_type, metadata
        made.leases = leases
        return made

    def __repr__(self) -> str:
        # Often a secret, as any setup data.
        return f"<setup data of {len(self)} bytes, {self.data_type}>"


class MetadataForm:
    """How the metadata of the requests on one connection is read and written."""

    __slots__ = ("_type", "trace", "types")

    def __init__(self, metadata_type: str, data_type: str = OCTETS) -> None:
        self._type = metadata_type
        self.types: ContentTypes = ContentTypes(data_type, metadata_type)
        """Those of a request that names none itself. One object for all of them."""
        self.trace: bytes | None = None
        """The trace of the last request that was read."""

    def request_of(self, model: Model, content: bytes | None, data: bytes) -> Request:
        """Return a request with its metadata. Raises ProtocolError."""
        self.trace = None
        if not content or self._type not in (COMPOSITE, ROUTING):
            return Request(model, data, content, types=self.types)
        if self._type == ROUTING:
            return Request(model, data, content, decode_route(content), types=self.types)
        # The first entry of a kind counts, as for `find_entry`.
        entries: dict[str, bytes] = {}
        for kind, entry in entries_of(content):
            if kind in _READ_HERE:
                entries.setdefault(kind, entry)
        self.trace = entries.get(TRACING)
        types, route = self.types, entries.get(ROUTING)
        if DATA_TYPE in entries or ACCEPTED_TYPES in entries:
            named = decode_types(entries.get(DATA_TYPE, b""))
            types = ContentTypes(
                named[0] if named else types.data,
                types.metadata,
                tuple(decode_types(entries.get(ACCEPTED_TYPES, b""))),
            )
        name = None if route is None else decode_route(route)
        return Request(model, data, content, name, types=types)

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

    @property
    def is_composite(self) -> bool:
        """Entries of several kinds may stand in one piece of metadata."""
        return self._type == COMPOSITE

    def credentials_of(self, content: bytes | None) -> bytes | None:
        """Return the content of the credentials in the metadata of a SETUP; None without some.
        Raises ProtocolError.
        """
        if not content:
            return None
        if self._type == COMPOSITE:
            return find_entry(content, AUTHENTICATION)
        return content if self._type == AUTHENTICATION else None
