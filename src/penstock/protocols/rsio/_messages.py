"""Every message of RS.io as a record, for control messages, tests and tools.

Elements under way never become records: the decoder hands their bytes on, the encoder writes them behind a header.
"""

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientHello:
    """First from the side that opened the connection, once."""

    version: int = 0
    extensions: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerHello:
    """First from the side that accepted the connection, once."""

    version: int = 0
    extensions: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Goodbye:
    """The sender is done, and sends nothing more; answered by a goodbye. Ends every stream."""

    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchEncoding:
    """The last compact message of its direction; what follows is in the encoding that the extension names."""

    extension: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscribe:
    """Begin a stream from the named publisher; `subscriber` is an id of the sender's choice."""

    publisher: str
    subscriber: int
    demand: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """So many more elements may come."""

    subscriber: int
    demand: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancel:
    """Nothing more is wanted."""

    subscriber: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OnSubscribe:
    """The stream has begun; an `element_size` above 0 is every element's, and leaves out their lengths."""

    subscriber: int
    element_size: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class OnNext:
    """One element."""

    subscriber: int
    element: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class OnNextPacked:
    """So many elements of the size that onSubscribe told, one behind the other."""

    subscriber: int
    count: int
    elements: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class OnNextPart:
    """A part of an element that more parts follow."""

    subscriber: int
    element: int
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class OnNextLastPart:
    """The last part of an element."""

    subscriber: int
    element: int
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class OnComplete:
    """The stream is done."""

    subscriber: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OnError:
    """The stream failed, or was refused."""

    subscriber: int
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtensionMessage:
    """A message that an extension defines: its type code and its body."""

    type: int
    body: bytes


Message: TypeAlias = (
    ClientHello
    | ServerHello
    | Goodbye
    | SwitchEncoding
    | Subscribe
    | Request
    | Cancel
    | OnSubscribe
    | OnNext
    | OnNextPacked
    | OnNextPart
    | OnNextLastPart
    | OnComplete
    | OnError
    | ExtensionMessage
)
"""Any message of RS.io, as a record."""
