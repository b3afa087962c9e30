"""msgspec, if it is installed: the fast way for elements of a known type."""

from collections.abc import Callable
from typing import Any

from penstock.spi import PlainType

msgspec: Any
try:
    import msgspec
except ImportError:  # penstock works without it; `pip install penstock[msgspec]` adds it
    msgspec = None


def fast_json(
    kind: Any, plain: PlainType
) -> tuple[Callable[[Any], bytes], Callable[[bytes], Any]] | None:
    """Return msgspec's encoder and decoder for `kind`, or None if msgspec is missing
    or treats the type in another way.
    """
    if msgspec is None or not plain.is_usual:
        return None
    try:
        return msgspec.json.Encoder().encode, msgspec.json.Decoder(kind).decode
    except (TypeError, ValueError):  # a type that msgspec does not support
        return None
