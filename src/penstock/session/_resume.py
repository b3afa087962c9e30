"""The extensions *resume* (id 5) and *resuming* (id 8):
after a lost connection the same session goes on over another one.

Resume runs on a connection whose two sides have it. ``48`` is the server's token, ``49`` an
acknowledgement. The bytes are counted and kept by the outbox (`RetainedBytes`): no message of the
session changes, and an element costs nothing more.

Resuming runs on the connection that follows. Its client says no more than ``4a``, with the token
and the number of bytes that it has received, and the server answers with ``4b``. Behind that the
bytes of the old connection go on, from the positions that were told.

Rules of this file:

* An acknowledgement goes out when `ACKNOWLEDGE_BYTES` have come,
  or `ACKNOWLEDGE_SECONDS` after the first byte.
* Acknowledgements are not acknowledged alone: two idle sides would answer each other without end.
* The fields have fixed lengths, and numbers the highest byte first: a body of another length is
  refused before it has come.
"""

from collections.abc import Callable
from typing import Final, Protocol

import attrs

from penstock.api import ActiveExtension, ConnectionLost, ExtensionLink, ProtocolError, Role
from penstock.session._outbox import Outbox
from penstock.session._retained_bytes import RESUME, RetainedBytes

TOKEN: Final = 0x48
ACKNOWLEDGE: Final = 0x49
ASK: Final = 0x4A
ANSWER: Final = 0x4B

TOKEN_BYTES: Final = 32
"""256 bits: no number of attempts is enough to guess a token."""

ACKNOWLEDGE_BYTES: Final = 256 << 10
ACKNOWLEDGE_SECONDS: Final = 0.1

_LONGEST_MESSAGE: Final = 16
"""Bytes of an acknowledgement in any encoding, at most."""

_LENGTHS: Final = {
    TOKEN: TOKEN_BYTES + 4,
    ACKNOWLEDGE: 8,
    ASK: TOKEN_BYTES + 8,
    ANSWER: TOKEN_BYTES + 8,
}
"""The length of the body of each message."""

NOT_RESUMED: Final = "resume"
"""Refuses to resume: the token is unknown, used or over, or belongs to another principal."""


def retain(outbox: Outbox, retained: RetainedBytes | None) -> None:
    """Keep the bytes that are taken from `outbox` until the peer has acknowledged them;
    None keeps nothing.
    """
    before = outbox.retained
    # Bytes that are sent again wait in the outbox a second time. The peer does not cause that, so
    # they must not count as unread by it.
    outbox.max_waiting += (0 if retained is None else retained.most) - (
        0 if before is None else before.most
    )
    outbox.retained = retained


def rewind(outbox: Outbox, position: int) -> None:
    """Let everything behind `position` be sent again, before what waits.
    Raises ProtocolError if it is not retained.
    """
    if outbox.retained is not None:
        data = outbox.retained.take_back(position)
        # The bytes behind `position` are counted again when they are taken again.
        outbox.taken_bytes -= len(data)
        # Waiting bytes go behind those that go again:
        # the bytes of a direction keep their positions.
        data += outbox.buffer
        outbox.buffer = data


class ResumedSession(Protocol):
    """The session as this file sees it."""

    @property
    def outbox(self) -> Outbox:
        """The outbox."""

    received_bytes: int


class Acknowledging(Protocol):
    """Counts and acknowledges on one connection: the extension *resume*, or the same by the frames
    of another protocol, whose dialect calls `ResumeOwner.bind`.
    """

    def start(self, session: ResumedSession, token: bytes | None, seconds: float) -> None:
        """Begin to count: the session is open.
        A server sends the token, and the seconds that it is good for.
        """

    def acknowledge(self) -> None:
        """Tell the peer how much has come."""

    def note_acknowledged(self) -> None:
        """Note that the peer knows how much has come:
        by an acknowledgement, or by the message that resumes.
        """

    def stop(self) -> None:
        """Refer to the session no longer: the connection is over."""


class ResumeOwner(Protocol):
    """The calls of an active resume to the connection that it belongs to."""

    def bind(self, active: Acknowledging) -> None:
        """Note that both sides have the extension."""

    def adopt(self, token: bytes) -> bool:
        """Let a token that the client has chosen, and keeps, lead to this connection of a server.
        Return False if it leads to another one.
        """

    def on_token(self, token: bytes, seconds: float) -> None:
        """Keep the server's token."""

    def on_input(self) -> None:
        """Note that bytes have arrived. Called while `is_awaiting` is true."""

    is_awaiting: bool


class Resume:
    """The extension for one connection."""

    __slots__ = ("_owner",)

    id: int = 5
    name: str = "resume"
    codes: frozenset[int] = frozenset({TOKEN, ACKNOWLEDGE})

    def __init__(self, owner: ResumeOwner) -> None:
        self._owner = owner

    @property
    def owner(self) -> ResumeOwner:
        """What keeps the connection after a loss; for a dialect that resumes by its own frames."""
        return self._owner

    def open(self, link: ExtensionLink, _now: float, /) -> ActiveExtension:
        """Start: both hellos list it."""
        return ActiveResume(link, self._owner)


class ActiveResume:
    """Resume on one connection."""

    __slots__ = (
        "_acknowledged",
        "_acknowledgements",
        "_due",
        "_link",
        "_owner",
        "_session",
        "is_uncounted",
    )

    def __init__(self, link: ExtensionLink, owner: ResumeOwner) -> None:
        self._link = link
        self._owner = owner
        self._session: ResumedSession | None = None
        self._acknowledged = 0  # the position that the peer was told
        self._acknowledgements = 0  # of the peer, since then
        self._due: float | None = None  # the time of the next acknowledgement
        self.is_uncounted: bool = True
        """Its messages count neither against `Limits.control_rate`,
        nor as a use of the connection.
        """
        owner.bind(self)

    def start(self, session: ResumedSession, token: bytes | None, seconds: float) -> None:
        """Begin to count: the session is open.
        A server sends the token, and the seconds that it is good for.
        """
        self._session = session
        if token is not None:
            # Four bytes of milliseconds: a longer time is told as 49 days.
            self._link.send(TOKEN, token + min(int(seconds * 1000), (1 << 32) - 1).to_bytes(4))

    def acknowledge(self) -> None:
        """Tell the peer how much has come."""
        if self._session is not None:
            self.note_acknowledged()
            self._link.send(ACKNOWLEDGE, self._session.received_bytes.to_bytes(8))

    # --- as an extension

    def heard(self, now: float, /) -> None:
        """Decide whether an acknowledgement is due.
        The bytes that have just come are counted already.
        """
        if self._owner.is_awaiting:
            self._owner.on_input()
        session = self._session
        if session is None:
            return
        new = session.received_bytes - self._acknowledged
        if new >= ACKNOWLEDGE_BYTES:
            self.acknowledge()
        # More than the acknowledgements that came:
        # else the bytes of one would call for the next, without end.
        elif self._due is None and new > _LONGEST_MESSAGE * self._acknowledgements:
            self._due = now + ACKNOWLEDGE_SECONDS
            self._link.wake_at(self._due)

    def tick(self, now: float, /) -> float | None:
        """Send an acknowledgement if it is due."""
        session = self._session
        if self._due is None or session is None or now < self._due:
            return self._due
        # The bytes that set the time may have been acknowledgements:
        # `heard` is called before they are decoded.
        if session.received_bytes - self._acknowledged > _LONGEST_MESSAGE * self._acknowledgements:
            self.acknowledge()
        self._due = None
        return None

    def received(self, type: int, body: bytes, _now: float, /) -> None:  # noqa: A002  # the wire's word
        """Take the token, or an acknowledgement."""
        # Again, because only a message whose body came late was checked before.
        self.check_length(type, len(body))
        if len(body) != _LENGTHS[type]:
            return
        if type == TOKEN:
            # A server was sent a token, and only servers give them.
            if self._link.role is Role.SERVER:
                self._link.break_off(RESUME)
            else:
                self._owner.on_token(body[:TOKEN_BYTES], int.from_bytes(body[TOKEN_BYTES:]) / 1000)
            return
        # Counted, so that its own bytes call for no acknowledgement.
        self._acknowledgements += 1
        outbox = None if self._session is None else self._session.outbox
        if outbox is None or outbox.retained is None:
            return
        was_full = outbox.retained.is_full
        if not outbox.retained.acknowledge(int.from_bytes(body)):
            self._link.glitch()  # it says nothing new
        elif was_full and not outbox.retained.is_full:
            # Nothing is to be sent, so nothing else would wake the writer,
            # whose next turn lets the publishers go on.
            outbox.retained.has_new_room = True
            outbox.wake()

    def check_length(self, type: int, length: int, /) -> None:  # noqa: A002  # the wire's word
        """Refuse a message of a wrong length."""
        if length != _LENGTHS[type]:
            self._link.break_off(RESUME)

    def note_acknowledged(self) -> None:
        """Note that the peer knows how much has come:
        by an acknowledgement, or by the message that resumes.
        """
        if self._session is not None:
            self._acknowledged, self._acknowledgements, self._due = (
                self._session.received_bytes,
                0,
                None,
            )

    def stop(self) -> None:
        """Refer to the session no longer: the connection is over."""
        self._session = None


@attrs.define(eq=False)
class Takeover:
    """The question and the answer on a connection that goes on for a lost one. Each side has one
    object for each such connection.
    """

    said: tuple[bytes, int] | None = None
    """The message of the other side: the token of a client, or the next token from a server; and
    the bytes that it has received.
    """

    question: tuple[bytes, int] | None = None
    """The message of a client: its token, and the bytes that it has received."""

    send: Callable[[int, bytes], None] | None = None
    """Sends a message of the extension, in the encoding of the connection."""

    kept: int = 0
    """The first position that the client can send again, in a protocol that tells it."""

    send_position: Callable[[int], None] | None = None
    """Sends the answer of a server in a protocol whose tokens stay. Then the token shows who the
    client is.
    """

    def answer(self, token: bytes, received: int) -> None:
        """Let the client go on: its next token, and the bytes that the server has received."""
        if self.send_position is not None:
            self.send_position(received)
        elif self.send is not None:
            self.send(ANSWER, token + received.to_bytes(8))


class Resuming:
    """The extension of the connection that goes on for a lost one.
    A client lists it there and nowhere else.
    """

    __slots__ = ("_takeover",)

    id: int = 8
    name: str = "resuming"
    codes: frozenset[int] = frozenset({ASK, ANSWER})
    # A plain attribute: a client that resumes has nothing to ask for, and must not begin.
    no_false_start: bool = False

    def __init__(self, takeover: Takeover) -> None:
        self._takeover = takeover

    @property
    def takeover(self) -> Takeover:
        """The question and the answer; for a dialect that resumes by its own frames."""
        return self._takeover

    def open(self, link: ExtensionLink, _now: float, /) -> ActiveExtension:
        """Start: the client asks, the server waits for that. Neither lets the other in before."""
        link.hold_peer()
        self._takeover.send = link.send
        question = self._takeover.question
        if question is not None:
            link.send(ASK, question[0] + question[1].to_bytes(8))
        return ActiveResuming(link, self._takeover)

    def meet(self, link: ExtensionLink, _introduction: bytes | None, _now: float, /) -> None:
        """Leave a server that resumes nothing.
        A client that does not resume is served as any other.
        """
        if link.role is Role.CLIENT:
            link.break_off(
                NOT_RESUMED,
                error=ConnectionLost("the server that was reached resumes no connections"),
            )


class ActiveResuming:
    """Resuming on one connection."""

    __slots__ = ("_link", "_takeover")

    def __init__(self, link: ExtensionLink, takeover: Takeover) -> None:
        self._link = link
        self._takeover = takeover

    def received(self, type: int, body: bytes, _now: float, /) -> None:  # noqa: A002  # the wire's word
        """Take what the other side says. It says it once."""
        due = ANSWER if self._link.role is Role.CLIENT else ASK
        # The length again, because `check_length` sees only a message whose body came late.
        if type != due or len(body) != _LENGTHS[due] or self._takeover.said is not None:
            raise ProtocolError(
                "a message that resumes a connection came twice, or from the wrong side",
                reason=RESUME,
            )
        self._takeover.said = body[:TOKEN_BYTES], int.from_bytes(body[TOKEN_BYTES:])
        self._link.admit()

    def check_length(self, type: int, length: int, /) -> None:  # noqa: A002  # the wire's word
        """Refuse a message of a wrong length."""
        if length != _LENGTHS[type]:
            self._link.break_off(RESUME)

    def check_subscribe(self, _stream_id: int, _target: object, /) -> str:
        """Refuse every stream: this connection never has one."""
        return NOT_RESUMED
