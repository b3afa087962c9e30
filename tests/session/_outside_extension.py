"""An extension as an outsider writes one: it uses each part of the seam, records the calls, and
imports `penstock.api` only.
"""

from typing import Any

from penstock.api import ActiveExtension, ExtensionLink, Hold

NOTE = 0x60


class Outsider:
    """An extension with every optional method. A test sets what it does."""

    id = 200
    name = "outsider"
    codes = frozenset({NOTE})

    def __init__(self, *, holds: bool = False, raises: str = "", annotates: bool = False) -> None:
        self.holds = holds
        self.raises = raises
        self.annotates = annotates
        self.answer: str | Hold | None = None
        self.calls: list[tuple[Any, ...]] = []
        self.links: list[ExtensionLink] = []

    @property
    def link(self) -> ExtensionLink:
        return self.links[-1]

    def note(self, name: str, *arguments: Any) -> None:
        self.calls.append((name, *arguments))
        if name == self.raises:
            raise RuntimeError("broken")

    def named(self, name: str) -> list[tuple[Any, ...]]:
        return [call[1:] for call in self.calls if call[0] == name]

    def open(self, link: ExtensionLink, now: float, /) -> ActiveExtension:
        self.links.append(link)
        if self.holds:
            link.hold_peer()
        self.note("open", link.peer)
        return self

    def received(self, type: int, body: bytes, now: float, /) -> None:  # noqa: A002  # the wire's word
        self.note("received", body)

    def check_subscribe(self, stream_id: int, target: Any, /) -> str | Hold | None:
        self.note("check_subscribe", stream_id, str(target))
        return self.answer

    def before_subscribe(self, stream_id: int, target: Any, /) -> None:
        self.note("before_subscribe", stream_id, str(target))
        if self.annotates:
            self.link.send(NOTE, b"before subscribe")

    def before_accept(self, stream_id: int, element_size: int, /) -> None:
        self.note("before_accept", stream_id, element_size)
        if self.annotates:
            self.link.send(NOTE, b"before accept")

    def on_accepted(self, stream_id: int, element_size: int, /) -> None:
        self.note("on_accepted", stream_id, element_size)

    def on_begun(self, stream_id: int, /) -> None:
        self.note("on_begun", stream_id)

    def on_ended(self, stream_id: int, is_served: bool, /) -> None:  # as the seam calls it
        self.note("on_ended", stream_id, is_served)

    def closed(self) -> None:
        self.note("closed")


class Meeting(Outsider):
    """It also examines peers that do not have it, introduces its client, and speaks first."""

    no_false_start = True

    def meet(
        self, link: ExtensionLink, introduction: bytes | None, now: float, /
    ) -> ActiveExtension | None:
        self.links.append(link)
        if self.holds:
            link.hold_peer()
        self.note("meet", introduction)
        return self

    def introduction(self) -> bytes:
        return b"it is me"
