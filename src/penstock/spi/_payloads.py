"""The payload of a request by name as bytes, and the value that its answer has."""

from typing import Any, Final

from penstock.api import PenstockError, PluginError, ProtocolError, UsageError, shown
from penstock.spi._elements import dumped_bytes
from penstock.spi._registry import Registry
from penstock.spi._resolve_serializer import format_of, resolve_serializer
from penstock.spi._serializer import Serializer

_JSON_VALUES: Final = (dict, list, tuple, int, float, bool)
"""Types of payloads that JSON has itself."""


def serializer_for(
    registry: Registry,
    serializer: str | Serializer | None,
    kind: Any,
    media_type: str | None = None,
) -> Serializer | None:
    """Return the serializer for values of type `kind`, as `resolve_serializer` does; one that knows
    no types is taken unchanged.
    """
    # A serializer that does not know types takes every element, and refuses none for its type.
    if serializer is not None and kind is not None:
        found = resolve_serializer(registry, serializer)
        if found is not None and type(found).for_type is Serializer.for_type:
            return found
    return resolve_serializer(registry, serializer, kind, media_type)


def encode_payload(
    registry: Registry,
    serializer: str | Serializer | None,
    payload: object,
    media_type: str | None = None,
) -> bytes | None:
    """Return the bytes of a payload, or None for none. Raises UsageError for one that the
    serializer does not support.
    """
    # None sends no payload at all: a handler may tell that from an empty one.
    if payload is None:
        return None
    kind: Any = type(payload)
    # A dict has no annotation to check it by, so it is sent as the format has it.
    if serializer is None and kind in _JSON_VALUES:
        plain = format_of(registry, media_type)
        return dumped_bytes(plain.dumps(payload), plain, payload)
    found = serializer_for(
        registry,
        serializer,
        None if kind in _JSON_VALUES or isinstance(payload, bytes) else kind,
        media_type,
    )
    # `dumped_bytes` refuses a serializer that returns a text:
    # it would fail much later, in the session.
    if found is not None:
        return dumped_bytes(found.dumps(payload), found, payload)
    if isinstance(payload, bytes | bytearray | memoryview):
        return bytes(payload)
    raise UsageError(
        f"the payload {shown(payload)} is sent as it is by serializer={serializer!r}; give bytes, "
        "or another serializer"
    )


def load_answer(serializer: Serializer, name: str, data: bytes) -> Any:
    """Return the value of an answer. Raises ProtocolError if the serializer cannot read it."""
    try:
        return serializer.loads(data)
    except ProtocolError as error:
        raise ProtocolError(
            f"the answer to request({name!r}), {len(data)} bytes, cannot be read by the "
            f"serializer {serializer.name!r}: {error}; is it the serializer, and the type, of the "
            "handler?",
            reason=error.reason,
        ) from error
    # The type of a PenstockError says already who must act.
    except PenstockError:
        raise
    except Exception as error:  # boundary: the serializer may be a plugin
        raise PluginError(
            f"the serializer {serializer.name!r} raised {error!r}, where only ProtocolError and "
            "UsageError are due"
        ) from error
