"""The interface of a serializer: elements to bytes, and bytes to elements."""

from abc import ABC, abstractmethod
from typing import ClassVar


class Serializer(ABC):
    """Converts elements to bytes and back. It holds no state: one object serves every stream.

    For each element that `dumps` accepts, `loads` returns an equal element. The docstring of a serializer names the exceptions.
    """

    name: ClassVar[str]
    """Publishers and subscribers select it by this name, and peers see it: lower-case letters, digits, '.' and '-'."""

    @abstractmethod
    def dumps(self, element: object, /) -> bytes:
        """Return the bytes of `element`. Raises UsageError for an unsupported type, and names both that type and the supported ones.

        Called for each element: keep it short. It is never called with None; None is not an element (rule 2.13).
        """

    @abstractmethod
    def loads(self, data: bytes, /) -> object:
        """Return the element in `data`, never None. Raises ProtocolError for bytes that `dumps` would not produce.

        The bytes come from a peer that may be hostile: they must not select which code runs.
        """

    def __repr__(self) -> str:
        return f"<serializer {self.name}>"
