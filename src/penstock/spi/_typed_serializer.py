"""Serializers for elements of one type, on a codec of msgspec.

Rules of this file:

* A message holds names of the program and positions, and no text of the peer: messages are logged.
* The error says who must act: the peer (ProtocolError), the program (UsageError), or the author of
  the element's class (`TypeCodeFailed`).
"""

import re
from collections.abc import Callable
from typing import Any, ClassVar, Final, Literal

import msgspec

from penstock.api import PenstockError, ProtocolError, UsageError, shown
from penstock.spi._element_bounds import ElementBounds
from penstock.spi._element_type import ElementType, element_type, is_model
from penstock.spi._serializer import Serializer, WrongElementType

_PLACE: Final = re.compile(r" - at (`key` in )?`\$([^`]*)`$")
_WITH_VALUE: Final = re.compile(r"^(Invalid (?:enum )?value) .*", re.DOTALL)
_UNFIT: Final = (TypeError, ValueError, OverflowError, RecursionError, MemoryError)


class TypeCodeFailed(UsageError):
    """The code of an element's class raised: a validator, `__post_init__`, a computed field.

    Its author must act.
    """


class TypedSerializer(Serializer):
    """Elements of one type, as a codec of msgspec writes and reads them; and models of pydantic.

    The base of the serializers ``json`` and ``msgpack`` for a type.
    """

    format: ClassVar[str]
    """The name of the format in messages: ``JSON``."""

    codec: ClassVar[Any]
    """`msgspec.json` or `msgspec.msgpack`."""

    no_element: ClassVar[str] = (
        "None is never an element (rule 2.13); wrap it, for example in a list"
    )
    """What to do about None as an element."""

    def __init__(self, kind: Any, bounds: ElementBounds, **options: Any) -> None:
        """Elements above `bounds` are neither sent nor read. `options` are those of msgspec's
        decoder. Raises UsageError for an unsupported type.
        """
        self._bounds = bounds
        # Looked up here: a property costs as much as msgspec needs for a short element.
        self._short = bounds.short
        self.type: ElementType = element_type(kind)
        self._exact = frozenset(self.type.classes) - {type(None)}
        self._encode: Callable[[object], bytes] = self.codec.Encoder(enc_hook=_to_plain).encode
        self._decode: Callable[[bytes], Any] = self._decoder(kind, options)

    def dumps(self, element: object, /) -> bytes:
        if type(element) not in self._exact:
            self.check(element)
        try:
            data = self._encode(element)
        except Exception as error:  # boundary: msgspec, and properties that a user wrote
            raise self.failed_write(element, error) from error
        if len(data) > self._short:
            self._bounds.check_written(data)
        return data

    def loads(self, data: bytes, /) -> object:
        if len(data) > self._short:
            self._bounds.check_received(data)
        try:
            element: object = self._decode(data)
        except Exception as error:  # boundary: msgspec, and validators that a user wrote
            failed = self.failed_read(error)
            raise failed from failed.__cause__
        if element is None:
            raise self._null_arrived()
        return element

    def _null_arrived(self) -> Exception:
        """Return the error for a null that was read as an element."""
        return ProtocolError(f"the null of {self.format} arrived as an element. {self.no_element}")

    def for_type(self, kind: Any, /) -> Serializer:
        """Raise UsageError: the type is set."""
        raise UsageError(
            f"this serializer is for elements of type {self.type.title} already; "
            f"leave type={shown(kind)} out"
        )

    def check(self, element: object) -> None:
        """Raise UsageError for an element of another class."""
        if element is None:
            raise UsageError(self.no_element)
        # A subclass of the class is sent, and arrives as the class.
        if not self.type.takes(element):
            raise WrongElementType(
                f"the element is of type {type(element).__name__}, and elements of this stream are "
                f"of type {self.type.title}",
                "change the type, or the serializer",
            )

    def failed_write(self, element: object, error: Exception) -> Exception:
        """Return the error for an element that could not be written."""
        name = type(element).__name__
        if isinstance(error, _UNFIT):
            return UsageError(
                f"the serializer {self.name!r} does not support this {name}: {error}; "
                f"elements of this stream are of type {self.type.title}"
            )
        return TypeCodeFailed(
            f"the code of {name} raised {shown(error)} when its fields were read: a property or a "
            "serializer of pydantic, and not the serializer of the stream. Correct it there"
        )

    def failed_read(self, error: Exception) -> Exception:
        """Return the error for bytes that could not be read."""
        if isinstance(error, PenstockError):
            return error
        if isinstance(error, msgspec.ValidationError):
            return self._not_of_type(reason_of(error))
        if isinstance(error, msgspec.DecodeError):
            return ProtocolError(f"the element is not {self.format}: {error}")
        if isinstance(error, UnicodeDecodeError | RecursionError):
            return ProtocolError(f"the element is not {self.format} ({type(error).__name__})")
        if isinstance(error, _UNFIT):
            return self._not_of_type(f"the values were refused ({type(error).__name__})")
        # Without the text of `error`: it may repeat the peer's value. The cause's traceback has it.
        failed = TypeCodeFailed(
            f"the code of {self.type.title} raised {type(error).__name__} when an object of it, or "
            "inside it, was made: its __post_init__ or a validator, and not the serializer. "
            "Correct it there; to refuse a value raise ValueError"
        )
        failed.__cause__ = error
        return failed

    def _not_of_type(self, reason: str) -> ProtocolError:
        return ProtocolError(f"the element is not of type {self.type.title}: {reason}")

    def to_builtins(self, element: object) -> object:
        """Return lists, dicts and plain values in the place of the objects of an element."""
        return msgspec.to_builtins(element, enc_hook=_to_plain, str_keys=True)

    def _decoder(self, kind: Any, options: dict[str, Any]) -> Any:
        def decoder(each: Any) -> Any:
            return self.codec.Decoder(each, dec_hook=_from_plain, **options).decode

        if not self.type.tag:
            return decoder(kind)
        # The key is read first, and then the whole element as the member that the key names.
        texts = Literal[tuple(self.type.members)]  # type: ignore[valid-type]  # known at run time only
        tags = msgspec.defstruct("Tag", [("text", texts)], rename={"text": self.type.tag})
        read_tag = decoder(tags)
        readers = {text: decoder(member) for text, member in self.type.members.items()}
        return lambda data: readers[read_tag(data).text](data)


def _to_plain(value: Any) -> object:
    """Return a form that msgspec writes, of an object that it does not know."""
    if is_model(type(value)):
        # mode="python" keeps NaN, so that JSON refuses it; mode="json" would give None.
        return value.model_dump(by_alias=True)
    raise TypeError(f"objects of type {type(value).__name__} cannot be sent")


def _from_plain(kind: Any, value: Any) -> Any:
    """Return an object of a class that msgspec does not know: `object`, or a model."""
    return value if kind is object else kind.model_validate(value)


def reason_of(error: msgspec.ValidationError) -> str:
    """Return why msgspec refused a value, with its place and without text of the peer."""
    text, cause = str(error), error.__cause__
    if cause is not None:  # raised by a validator, whose text may repeat the value
        return _placed(f"the values were refused ({type(cause).__name__})", text[len(str(cause)) :])
    if text.startswith("Object contains unknown field"):
        return "object contains a field that the class does not have"
    place = _PLACE.search(text)
    reason = _WITH_VALUE.sub(r"\1", text[: place.start()] if place else text)
    return _placed(reason[0].lower() + reason[1:], place[0] if place else "")


def _placed(reason: str, suffix: str) -> str:
    """Return a reason after its place: ``quotes[3].price: expected `float`, got `str```."""
    found = _PLACE.fullmatch(suffix)
    if found is None:
        return reason
    path = found[2].removeprefix(".")
    return f"a key in {path or 'the object'}: {reason}" if found[1] else f"{path}: {reason}"
