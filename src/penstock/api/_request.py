"""A request for a stream: an interaction model, and the data that identifies the stream."""

from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Any, Self

from penstock.api._named_request import decode_named_request


class Model(Enum):
    """The kinds of interaction. `NAMED` is a subscription to a publisher by its name."""

    NAMED = "named publisher"
    RESPONSE = "request and response"
    FIRE_AND_FORGET = "fire and forget"
    STREAM = "request for a stream"
    SUBSCRIPTION = "request for a subscription"
    CHANNEL = "request for a channel"
    METADATA_PUSH = "metadata push"

    # Enum hashes the name with a Python function, and each request looks its model up in three
    # tables.
    if not TYPE_CHECKING:  # a type checker sees the method of Enum, which has the same type
        __hash__ = object.__hash__


class WithMetadata(bytes):
    """The data of an element or an answer, with metadata beside it: ``WithMetadata(b"data",
    metadata=b"…")``.

    A publisher or a handler of bytes gives it, and a peer gets it, in a protocol that carries
    metadata with elements: RSocket. Other protocols send the data alone. Equal to its data.
    """

    metadata: bytes

    def __new__(cls, data: bytes = b"", *, metadata: bytes) -> Self:
        """Put metadata beside data."""
        made = super().__new__(cls, data)
        made.metadata = metadata
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        # pickle and copy call the class with its data alone.
        return partial(type(self), bytes(self), metadata=self.metadata), ()


@dataclass(frozen=True, slots=True)
class ContentTypes:
    """The MIME types that a peer has named for a request."""

    data: str
    """The MIME type of the request's data, and of the answer if `accepted` is empty."""
    metadata: str
    """The MIME type of `Request.metadata`."""
    accepted: tuple[str, ...] = ()
    """Those that the peer takes as an answer to this request, best first."""


@dataclass(slots=True)
class Request:
    """A request as it crosses the wire. Treat it as immutable: it is not frozen, because that
    would double the cost of making one.
    """

    model: Model
    data: bytes
    """The name of the stream and its parameters, or the request of the application."""
    metadata: bytes | None = None
    """The metadata that a protocol carries beside the data of a request, in a form that both sides
    agreed on. Only RSocket has it.
    """
    name: str | None = None
    """The name that the request asks for, in a protocol that carries names beside the data. None:
    `data` is the name, has one in it (`encode_named_request`), or has a meaning of its own.
    """
    elements: Any = None
    """The source of the elements that the requester of a channel sends."""
    types: ContentTypes | None = None
    """The MIME types of the data and the metadata, in a protocol that names them: RSocket."""

    def __str__(self) -> str:
        if self.name is not None:
            return self.name[:200]
        # For messages and observers: usually a publisher's name.
        # Bytes that are not UTF-8 must not raise here.
        named = decode_named_request(self.data)
        return (
            self.data[:200].decode(errors="backslashreplace") if named is None else named[0][:200]
        )
