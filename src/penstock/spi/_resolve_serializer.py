"""The one place that finds the serializer of a stream.

Rules of this file:

* A serializer is given by its name, as an object, or not at all. Without one the type of the
  elements decides: str is sent as text, bytes unchanged, and every other type as JSON.
"""

from collections.abc import Iterable
from contextlib import suppress
from types import UnionType
from typing import Any, Final, Union, get_args, get_origin

from penstock.api import UsageError, shown
from penstock.spi._registry import Registry
from penstock.spi._serializer import Serializer

BYTES: Final = "bytes"
"""The name of the serializer that changes nothing. Streams of bytes are not passed through it."""


def resolve_serializer(
    registry: Registry,
    serializer: str | Serializer | None,
    kind: Any = None,
    media_type: str | None = None,
) -> Serializer | None:
    """Return the serializer for elements of type `kind`, or None for bytes, which are sent
    unchanged.

    `serializer` is a name or an object. If it is None, `kind` decides: bytes (or no type) give
    None, str gives ``text``, and other types give ``json`` for that type, or the serializer of the
    MIME type that the peer has named, if one is installed.
    Raises UsageError for a name that is not installed, for an object that cannot serialize, and for
    a type that the serializer does not support.
    """
    if serializer is None:
        if is_bytes(kind):
            return None
        if kind is str:
            return registry.serializer("text")
        # A format that does not know the type is not used: the program chooses the type.
        wanted = _of_media_type(registry, media_type)
        if wanted is not None:
            with suppress(UsageError):
                return wanted.for_type(kind)
        return registry.serializer("json").for_type(kind)
    found = _find(registry, serializer)
    if kind is None:
        return found
    # The serializer bytes also judges a type: `type=Quote` beside it is a mistake.
    bound = (registry.serializer(BYTES) if found is None else found).for_type(kind)
    return None if found is None else bound


def format_of(registry: Registry, media_type: str | None) -> Serializer:
    """Return the serializer for values of any type if the program has named none: that of a MIME
    type, or ``json``.
    """
    return _of_media_type(registry, media_type) or registry.serializer("json")


def known_media_type(registry: Registry, media_types: Iterable[str]) -> str | None:
    """Return the first of the MIME types that a serializer has, without its parameters; None if
    none of them is known.
    """
    known = (_plain(each) for each in media_types if _of_media_type(registry, each) is not None)
    return next(known, None)


def _plain(media_type: str) -> str:
    # Parameters, such as a charset, do not change the format.
    return media_type.partition(";")[0].strip().lower()


def _of_media_type(registry: Registry, media_type: str | None) -> Serializer | None:
    if media_type is None:
        return None
    wanted = _plain(media_type)
    found = (each for each in registry.serializers.values() if wanted in each.media_types)
    return next(found, None)


def serializer_name(serializer: str | Serializer | None, kind: Any = None) -> str:
    """Return the name of what `resolve_serializer` finds, without a registry."""
    if serializer is not None:
        return serializer if isinstance(serializer, str) else serializer.name
    return BYTES if is_bytes(kind) else "text" if kind is str else "json"


def type_name(kind: Any) -> str:
    """Return the name of a class that a program has written, or "" for all other types."""
    return (
        kind.__name__
        if isinstance(kind, type) and kind.__module__ != "builtins" and get_origin(kind) is None
        else ""
    )


def is_bytes(kind: Any) -> bool:
    """Return True for types whose elements are sent unchanged if no serializer is given. A type
    that says nothing is one of them.
    """
    if get_origin(kind) in (Union, UnionType):
        return all(is_bytes(each) for each in get_args(kind))
    if kind is None or kind is Any or kind is object:
        return True
    return isinstance(kind, type) and issubclass(kind, bytes | bytearray | memoryview)


def check_serializer_argument(serializer: object) -> None:
    """Raise UsageError for a value that is neither a serializer's name, nor a serializer, nor
    None. No registry is needed.
    """
    if serializer is None or isinstance(serializer, str):
        return
    if isinstance(serializer, type) and issubclass(serializer, Serializer):
        raise UsageError(
            f"serializer={serializer.__name__} is a class; give an object: "
            f"serializer={serializer.__name__}()"
        )
    if not isinstance(serializer, Serializer):
        raise UsageError(
            f"serializer={shown(serializer)}; give a name like 'json', or an object whose class "
            "inherits from penstock.spi.Serializer"
        )
    name = getattr(serializer, "name", None)
    if not isinstance(name, str) or not name:
        raise UsageError(
            f"the serializer of the class {type(serializer).__name__} has name={shown(name)}; set "
            "the class attribute name to a text, like name = 'my-format'"
        )


def _find(registry: Registry, serializer: str | Serializer) -> Serializer | None:
    if type(serializer) is str:  # the usual case
        return None if serializer == BYTES else registry.serializer(serializer)
    check_serializer_argument(serializer)
    return serializer if isinstance(serializer, Serializer) else registry.serializer(serializer)
