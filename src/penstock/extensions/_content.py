"""The content extension (id 3): tell the subscriber how the elements of a stream are serialized,
before the stream begins.

Message ``44`` has the id of the stream, the name of the serializer and the name of the type, which
may be empty. It is sent once, right before the stream is accepted, and never before a refusal. So a
subscriber can read a stream that it knows nothing of, and one that expects another format fails
before the first element.
"""

from functools import lru_cache
from typing import Final

from penstock.api import ActiveExtension, ExtensionLink
from penstock.spi import BROKEN, encode_field, encode_number, read_field, read_number

CONTENT: Final = 0x44

HEADERS: Final = 27
"""Bytes of a body beside its two names, at most: three varints."""

KEPT: Final = 256
"""Pairs of names of which the encoded and the decoded form are kept. A service has few, and each
of its streams begins with one.
"""

LONGEST_KEPT: Final = 64
"""Bytes of a pair that is kept when it is received:
the peer has chosen it, and all pairs together must stay small.
"""


class Content:
    """Announces the serializers of publishers, and hears of those of the peer."""

    id: int = 3
    name: str = "content"
    codes: frozenset[int] = frozenset({CONTENT})

    def open(self, link: ExtensionLink, now: float, /) -> ActiveExtension:
        """Start on a connection."""
        return _ActiveContent(link)


class _ActiveContent:
    """The content extension on one connection."""

    __slots__ = ("_link",)

    goes_with_streams = True

    def __init__(self, link: ExtensionLink) -> None:
        self._link = link

    def before_accept(self, stream_id: int, _element_size: int, /) -> None:
        """Announce a stream of the peer."""
        content = self._link.content_of(stream_id)
        if content is not None:
            self._link.annotate(CONTENT, encode_number(stream_id) + _names_as_bytes(*content))

    def received(self, type: int, body: bytes, now: float, /) -> None:  # noqa: A002  # the protocol's word
        """Hear of a stream of this side."""
        stream_id, position = read_number(body, 0)
        fields = b"" if position == BROKEN else body[position:]
        names, longest = (_kept_names if len(fields) <= LONGEST_KEPT else _names_of)(fields)
        most = self._link.limits.max_name
        if longest > most:
            self._link.break_off(f"limit:name {longest} > {most}")
        elif names is None or not self._link.report_content(stream_id, *names):
            self._link.break_off(f"protocol:content {stream_id}")

    def check_length(self, type: int, length: int, /) -> None:  # noqa: A002  # the protocol's word
        """Refuse a message for its length, before its body is there."""
        most = 2 * self._link.limits.max_name + HEADERS
        if length > most:
            self._link.break_off(f"limit:name {length} > {most}")


@lru_cache(maxsize=KEPT)
def _names_as_bytes(serializer: str, schema: str) -> bytes:
    return encode_field(serializer.encode()) + encode_field(schema.encode())


def _names_of(fields: bytes) -> tuple[tuple[str, str] | None, int]:
    """Return the names of the serializer and of the type, None if they cannot be read,
    and the bytes of the longer one.
    """
    serializer, position = read_field(fields, 0)
    schema, end = read_field(fields, position)
    longest = max(len(serializer), len(schema))
    if end != len(fields) or not serializer:
        return None, longest
    try:
        return (serializer.decode(), schema.decode()), longest
    except UnicodeDecodeError:
        return None, longest


_kept_names = lru_cache(maxsize=KEPT)(_names_of)
