"""A connection in another encoding than the compact one, for checks that write compact messages
and look at messages.

Rules of this file:

* A check writes compact bytes. Whole messages in them are sent in the encoding; bytes that are not
  a message are sent unchanged, because the check is about them.
* If the encoding is agreed on in the hellos, the client's hello lists it. The direction of this
  side changes with the first message after the server's hello; earlier messages stay compact.
* The direction of the target changes where its switchEncoding stands.
"""

from collections.abc import Collection, Sequence
from typing import Final

from penstock_tck.wire import rsio as io
from penstock_tck.wire._rsio_forms import FORMS_BY_ID, Form
from penstock_tck.wire.rsio import Message, MessageReader

MOST_IDS: Final = 64
"""The ids that each peer takes in a hello."""


class Outgoing:
    """The direction of this side."""

    def __init__(self, form: Form | None = None, *, is_outside: bool = False) -> None:
        """With `is_outside` the encoding was chosen before the first byte,
        which is in it already.
        """
        self.form = form
        self.is_changed: bool = is_outside
        """Messages are sent in the encoding from now on."""
        # knows the fixed sizes of the streams that the check publishes.
        self._written = MessageReader()

    def change(self, form: Form) -> bytes:
        """Return the message that ends the compact encoding."""
        self.form, self.is_changed = form, True
        return io.numbers(io.SWITCH_ENCODING, form.id)

    def encode(self, data: bytes, *, is_agreed: bool = False) -> bytes:
        """Return what is sent for the compact bytes `data`.
        `is_agreed` says that the server's hello lists the encoding.
        """
        messages = self._written.feed(data)
        rest = self._written.take_rest()
        if self.form is None:
            return data
        marker = b"" if self.is_changed or not is_agreed else self.change(self.form)
        if self.is_changed:
            return marker + b"".join(map(self.form.encode, messages)) + rest
        return _listing(self.form.id, messages, data)


def _listing(extension: int, messages: Sequence[Message], data: bytes) -> bytes:
    """Return `data` with the id of the encoding in the hello, if it begins with one."""
    if not messages or messages[0].type != io.CLIENT_HELLO or messages[0].numbers[0]:
        return data
    ids = messages[0].numbers[1:]
    return io.hello(*(extension, *ids)[:MOST_IDS]) + data[len(io.hello(*ids)) :]


class Incoming:
    """The direction of the target."""

    def __init__(self, form: Form | None = None, *, agreed: Collection[int] = ()) -> None:
        """`form` is the encoding of the first byte, None for the compact one. `agreed` are ids
        that the target may change to.
        """
        self._reader = MessageReader() if form is None else form.reader()
        self._agreed = agreed
        self.form: Form | None = form
        """The encoding now; None for the compact one."""

    @property
    def sizes(self) -> dict[int, int]:
        """The element size of each stream for which onSubscribe has come."""
        return self._reader.sizes

    @property
    def error(self) -> str:
        """Why the bytes can no longer be decoded; empty while they can."""
        return self._reader.error

    def feed(self, data: bytes) -> list[Message]:
        """Return the messages that these bytes complete."""
        found = self._reader.feed(data)
        while found and found[-1].type == io.SWITCH_ENCODING and not self.error:
            (extension,) = found[-1].numbers
            if (
                self.form is not None
                or extension not in self._agreed
                or extension not in FORMS_BY_ID
            ):
                self._reader.error = (
                    f"a change to the encoding {extension}, which was not agreed on, or is the "
                    "second one"
                )
                break
            self.form = FORMS_BY_ID[extension]
            before, self._reader = self._reader, self.form.reader()
            self._reader.sizes = before.sizes
            more = self._reader.feed(before.take_rest())
            if not more:
                break
            found += more
        return found
