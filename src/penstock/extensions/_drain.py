"""The drain extension (id 6): tell the peer that this side takes no new streams, and
when it leaves.

Message ``45`` has the milliseconds until the goodbye, as a varint. It may be repeated, with an
earlier end. Each new stream of the peer is refused with the text `draining`, also over connections
without this extension, and streams that run may end until then.

After ``45`` its sender uses the text `draining` for nothing else. So a client knows that a stream
which it refuses was not begun, and may open it again elsewhere.
"""

from typing import Final

from penstock.api import ActiveExtension, ExtensionLink
from penstock.spi import encode_number, read_number

DRAIN: Final = 0x45

MAX_BODY: Final = 9
"""Bytes of the longest varint."""


class Drain:
    """Announces that this side drains, and hears of it from the peer."""

    id: int = 6
    name: str = "drain"
    codes: frozenset[int] = frozenset({DRAIN})

    def open(self, link: ExtensionLink, now: float, /) -> ActiveExtension:
        """Start on a connection."""
        return _ActiveDrain(link)


class _ActiveDrain:
    """The drain extension on one connection."""

    __slots__ = ("_link",)

    def __init__(self, link: ExtensionLink) -> None:
        self._link = link

    def received(self, type: int, body: bytes, now: float, /) -> None:  # noqa: A002  # the protocol's word
        """Note that the peer drains.
        The goodbye shows when the time is over, so the number needs no clock here.
        """
        _, end = read_number(body, 0)
        if end == len(body):
            self._link.report_draining()
        else:
            self._link.break_off("protocol:drain")

    def check_length(self, type: int, length: int, /) -> None:  # noqa: A002  # the protocol's word
        """Refuse a message for its length, before its body is there."""
        if length > MAX_BODY:
            self._link.break_off("protocol:drain")

    def on_draining(self, seconds: float, /) -> None:
        """Tell the peer."""
        self._link.send(DRAIN, encode_number(int(seconds * 1000)))
