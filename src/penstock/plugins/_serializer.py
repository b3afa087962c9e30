"""What a serializer must offer: elements into bytes, and back."""

from abc import ABC, abstractmethod
from typing import ClassVar


class Serializer(ABC):
    """Puts elements into bytes and back. It holds no state: one object serves every stream.

    Whatever `dumps` accepts, `loads` gives back equal, or the docstring of the serializer says what changes.
    """

    name: ClassVar[str]
    """What it is asked for by, and what peers are told: small letters, digits, '.' and '-'."""

    @abstractmethod
    def dumps(self, element: object, /) -> bytes:
        """Return the bytes of `element`. Raises UsageError for a type that it cannot take: which one it got, which one was due.

        Called for each element: keep it short. None never arrives here; it is not an element.
        """

    @abstractmethod
    def loads(self, data: bytes, /) -> object:
        """Return the element in `data`, never None. Raises ProtocolError for bytes that `dumps` would not have made.

        The bytes come from a peer that may be hostile: what they say must not choose what code runs.
        """

    def __repr__(self) -> str:
        return f"<serializer {self.name}>"
