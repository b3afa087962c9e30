"""The interface of a serializer: elements to bytes, and bytes to elements."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from penstock.api import UsageError, shown


class WrongElementType(UsageError):
    """An element is not of the type that its serializer is for. Raised by `dumps`.

    `fact` says which type the element has, and which one is expected. `advice` is for a stream
    whose serializer was named by the program. If the program gave the type, the advice is to change
    the type at the place where it was given.
    """

    def __init__(self, fact: str, advice: str) -> None:
        super().__init__(fact, advice)
        self.fact: str = fact
        self.advice: str = advice

    def __str__(self) -> str:
        return f"{self.fact}; {self.advice}"


class Serializer(ABC):
    """Converts elements to bytes and back. It holds no state: one object serves every stream.

    For each element that `dumps` accepts, `loads` returns an equal element. The docstring of a
    serializer names the exceptions.
    """

    name: ClassVar[str]
    """Publishers and subscribers select it by this name, and peers see it:
    lower-case letters, digits, '.' and '-'.
    """

    media_types: ClassVar[tuple[str, ...]] = ()
    """The MIME types of its format, in lower case: a peer that names one of them gets this
    serializer, in a protocol that names MIME types.
    """

    @abstractmethod
    def dumps(self, element: object, /) -> bytes:
        """Return the bytes of `element`. Raises `WrongElementType` for an unsupported type, and
        names it and the supported ones.

        Called for each element: keep it short. It is never called with None;
        None is not an element (rule 2.13).
        """

    @abstractmethod
    def loads(self, data: bytes, /) -> object:
        """Return the element in `data`, never None.
        Raises ProtocolError for bytes that `dumps` would not produce.

        The bytes come from a peer that may be hostile: they must not select which code runs.
        """

    def loads_many(self, elements: Sequence[bytes], /) -> list[Any]:
        """Return what `loads` returns for each of `elements`, in order.
        If it raises, `loads` is called for each of them.

        A serializer that can load a list in less time than one element after the other does it
        here.
        """
        loads = self.loads
        return [loads(element) for element in elements]

    def for_type(self, kind: Any, /) -> "Serializer":
        """Return the serializer of the same format for elements of type `kind`.
        Raises UsageError for an unsupported type.

        Called for each stream, so a serializer that builds something for a type keeps it. Without
        this method the serializer cannot be combined with ``type=``.
        """
        raise UsageError(
            f"the serializer {self.name!r} cannot be bound to a type; leave type={shown(kind)} "
            "out, or leave serializer= out to use json"
        )

    def __repr__(self) -> str:
        return f"<serializer {self.name}>"
