"""The connections of a server that can be resumed, by token, and their wait for the client.

Rules of this file:

* A token has 256 bits and one use. It names a connection while that is open or suspended, and only
  for the principal that it was given to.
* A server gives the next token with each answer. All tokens since the last link that worked are
  good until the client has sent something after the answer: the answer may be lost with its
  transport. After that only one token is good: the client got it there.
* A client may be back before the server knows of the loss.
  Then the transport that the server still has is ended.
* If two clients come with the same token, the later one goes on,
  and the transport of the other is ended.
* Every refusal has the same reason:
  a client learns neither what was wrong, nor whether a token was known.
* A client of RSocket chooses its token itself, and keeps it. It shows nothing else when it is back,
  so the token stands for its principal, unless its transport tells one.
* A worker of several puts its name into its tokens, in the place of `NAME_BYTES` random ones: 224
  random bits are left. A worker whose client shows the token of another one asks that one, and
  then passes the bytes on (`Elsewhere`).
"""

from collections.abc import Callable
from hashlib import sha256
from secrets import token_bytes
from typing import Final, Protocol

import trio

from penstock.api import ConnectionLost, Extension, Limits, ProtocolError
from penstock.runtime.connection import Handover, Resumption
from penstock.runtime.server._admission import Slot
from penstock.session import TOKEN_BYTES, Resume, Resuming, Takeover
from penstock.spi import Connection

MAX_TOKENS: Final = 8
"""Tokens of a connection that are good while the client has not got the last one, without
that last one.
"""


NAME_BYTES: Final = 4
"""Bytes of a token that name a worker."""


class OnChange(Protocol):
    """Called when the connection of a place is suspended, and when it is not any more."""

    def __call__(self, place: Slot, /, *, is_suspended: bool) -> None: ...


class LostConnection(Protocol):
    """A connection that its client wants to go on with: of this process, or of another worker."""

    async def take_over(
        self, token: bytes, position: int, principal: object
    ) -> tuple[int, bytes, int]:
        """Return the number of this attempt, the next token, and the bytes that were received from
        the client. Raises ConnectionLost or ProtocolError if the connection cannot go on.
        """

    async def go_on(self, number: int, connection: Connection, position: int) -> None:
        """Use `connection`, and return when it is needed no longer."""

    async def release(self) -> None:
        """Forget the client: its transport has ended before `go_on`."""

    def fail(self, wrong: ProtocolError) -> None:
        """End the lost connection: the question of the client does not fit."""


class Elsewhere(Protocol):
    """Finds the connection of another worker by its token."""

    def __call__(self, worker: str, token: bytes, /) -> LostConnection | None: ...


class ResumableConnections:
    """The connections of a server that both sides may resume."""

    def __init__(
        self, on_change: OnChange, worker: str = "", elsewhere: Elsewhere | None = None
    ) -> None:
        """`on_change` is called for each of them. `worker` is the name of this process among
        several.
        """
        self.on_change: OnChange = on_change
        self._name = int(worker).to_bytes(NAME_BYTES) if worker else b""
        self._elsewhere = elsewhere
        self.relays: set[trio.CancelScope] = set()
        """A scope for each connection of another worker whose bytes pass through this process."""
        # By the hash of the token: the time that a look-up takes tells nothing about a token.
        # `MAX_TOKENS` + 1 for each connection at most.
        self._by_token: dict[bytes, ServerResumption] = {}

    def new_token(self, resumption: "ServerResumption") -> tuple[bytes, bytes]:
        """Return a token for a connection, and its hash."""
        token = self._name + token_bytes(TOKEN_BYTES - len(self._name))
        key = key_of(token)
        self._by_token[key] = resumption
        return token, key

    def add(self, key: bytes, resumption: "ServerResumption") -> bool:
        """Let the hash of a token lead to a connection. Return False if it leads to another."""
        return self._by_token.setdefault(key, resumption) is resumption

    def find(self, token: bytes) -> LostConnection | None:
        """Return the connection that has that token, of this process or of another worker."""
        found = self.find_here(token)
        if found is None and self._elsewhere is not None and token[:NAME_BYTES] != self._name:
            return self._elsewhere(str(int.from_bytes(token[:NAME_BYTES])), token)
        return found

    def find_here(self, token: bytes) -> "ServerResumption | None":
        """Return the connection of this process that has that token."""
        return self._by_token.get(key_of(token))

    def forget(self, key: bytes) -> None:
        """Let the token with that hash be good for nothing."""
        self._by_token.pop(key, None)


class ServerResumption(Resumption):
    """Waits for the client of one connection."""

    __slots__ = (
        "_attempt",
        "_found",
        "_is_adopted",
        "_keys",
        "_link_over",
        "_next",
        "_place",
        "_table",
        "waits_for_peer",
    )

    def __init__(self, limits: Limits, table: ResumableConnections, place: Slot) -> None:
        super().__init__(limits)
        self._table = table
        self._place: Slot | None = place  # None when the connection is over
        # The hashes of the tokens that are good; the last token was given with the link of now.
        # The tokens are not kept.
        self._keys: tuple[bytes, ...] = ()
        self._is_adopted = False  # the client has chosen the token, and keeps it
        self.waits_for_peer: bool = True
        self._attempt = 0
        self._next: tuple[Connection, int] | None = None
        self._found: trio.Event | None = None  # set when there is a next link
        # Set when the link of now is over, or the connection.
        self._link_over: trio.Event | None = None

    def adopt(self, token: bytes) -> bool:
        key = key_of(token)
        if not self._table.add(key, self):
            return False
        # Each answer of the server follows the question of the client at once: there is no next
        # token that the client would have to get before.
        self._keys, self._is_adopted, self.waits_for_peer = (key,), True, False
        return True

    def first_token(self) -> bytes | None:
        if self._is_adopted:
            return None
        token, key = self._table.new_token(self)
        self._keys = (key,)
        return token

    def on_token(self, token: bytes, seconds: float) -> None:
        """Do nothing: a server takes no token."""

    def on_confirmed(self) -> None:
        # The client has got the last token, and says no earlier one again.
        for key in self._keys[:-1]:
            self._table.forget(key)
        self._keys = self._keys[-1:]

    async def find_link(self, lost: Exception) -> tuple[Connection, int]:
        found = self._found = trio.Event()
        self._report(is_suspended=True)
        self._set_link_over()  # from now on the count of the received bytes stands
        try:
            with trio.move_on_after(self._limits.resume_timeout):
                await found.wait()
        finally:
            self._found = None
            self._report(is_suspended=False)
        # Looked at, and not the time: a link may have come in the same pass as the deadline.
        following, self._next = self._next, None
        if following is None:
            raise self.give_up(lost, self.lateness)
        return following

    def close(self) -> None:
        super().close()
        # A token of a connection that is over must lead nowhere.
        for key in self._keys:
            self._table.forget(key)
        self._keys = ()
        self._set_link_over()
        self._place = None

    # --- for a client that is back

    async def take_over(
        self, token: bytes, position: int, principal: object
    ) -> tuple[int, bytes, int]:
        """Return the number of this attempt, the next token, and the bytes
        that were received from the client.

        Raises ConnectionLost if the connection cannot go on.
        """
        links = self._links
        # Before `check`: another principal must not learn anything about positions.
        is_shown = principal is not None or not self._is_adopted
        if links is None or (is_shown and self.principal != principal):
            raise ConnectionLost(
                "a client came back with a token that belongs to another principal"
            )
        self.check(position)
        # The later of two clients with one token goes on: the earlier one finds another number.
        self._attempt += 1
        number = self._attempt
        if self._found is None:
            # The client is back before the loss was noticed here.
            over = self._link_over = trio.Event() if self._link_over is None else self._link_over
            links.drop()
            await over.wait()
        # Looked at anew: the connection may have ended while this waited,
        # and a later attempt goes first.
        session = self._session
        if session is None or self._found is None or number != self._attempt:
            raise ConnectionLost(
                "the lost connection is over, or another client has come back with the same token"
            )
        if self._is_adopted:
            return number, token, self.received
        following, its_key = self._table.new_token(self)
        key = key_of(token)
        # The token that was said stays: a client says it again if the answer is lost. So does one
        # that an earlier answer gave, because attempts may overtake each other.
        earlier = tuple(other for other in self._keys if other != key)
        for forgotten in earlier[: 1 - MAX_TOKENS]:
            self._table.forget(forgotten)
        self._keys = (*earlier[1 - MAX_TOKENS :], key, its_key)
        return number, following, self.received

    def give(self, number: int, connection: Connection, position: int) -> trio.Event | None:
        """Go on over `connection`, and return what is set when that is over; None if another
        client was faster, or it is too late.
        """
        if self._found is None or number != self._attempt or self._next is not None:
            return None
        self._next = connection, position
        self._found.set()
        self._link_over = trio.Event()
        return self._link_over

    async def go_on(self, number: int, connection: Connection, position: int) -> None:
        """Go on over `connection`, and wait until it is needed no longer."""
        over = self.give(number, connection, position)
        if over is not None:
            # Shielded: the connection says its own goodbye, and ends within its deadlines.
            with trio.CancelScope(shield=True):
                await over.wait()

    async def release(self) -> None:
        """Do nothing: the client may come back with the same token."""

    def fail(self, wrong: ProtocolError) -> None:
        """End the connection: the question of the client does not fit."""
        if self._links is not None:
            self._links.fail(
                wrong.reason,
                ConnectionLost(f"the connection cannot go on: {wrong}", resumable=False),
            )

    def _report(self, *, is_suspended: bool) -> None:
        if self._place is not None:
            self._table.on_change(self._place, is_suspended=is_suspended)

    def _set_link_over(self) -> None:
        if self._link_over is not None:
            self._link_over.set()
            self._link_over = None


class ServerHandover(Handover):
    """The connection of a client that may be back."""

    def __init__(self, table: ResumableConnections) -> None:
        self._table = table
        self.takeover: Takeover = Takeover()
        # With the number of the attempt, and the client's position.
        self._found: tuple[LostConnection, int, int] | None = None

    @property
    def is_asked(self) -> bool:
        return self.takeover.said is not None

    async def prepare(self, principal: object, stop_reading: Callable[[], None]) -> None:
        token, position = self.takeover.said or (b"", 0)
        resumption = self._table.find(token)
        # The text is for the log of this side: the client gets one reason for every refusal.
        if resumption is None:
            raise ConnectionLost(
                "a client came back with a token that is unknown, was used, or is over"
            )
        try:
            number, following, received = await resumption.take_over(token, position, principal)
        except ProtocolError as wrong:
            resumption.fail(wrong)
            raise ConnectionLost(f"a client came back, and {wrong}") from None
        if self.takeover.kept > received:
            await resumption.release()
            raise ConnectionLost(
                f"a client came back that can send again from {self.takeover.kept} on, and "
                f"{received} have come here"
            )
        self._found = resumption, number, position
        # Before the answer: the bytes that the client sends after it belong to the lost connection.
        stop_reading()
        self.takeover.answer(following, received)

    async def run(self) -> None:
        """Give the transport to the lost connection, and wait until that needs it no longer."""
        if self._found is None:
            return
        resumption, number, position = self._found
        if self.connection is None:
            await resumption.release()
            return
        await resumption.go_on(number, self.connection, position)


def resuming(
    table: ResumableConnections | None, limits: Limits, place: Slot
) -> tuple[ServerResumption | None, ServerHandover | None, tuple[Extension, ...]]:
    """Return what lets a connection be resumed, and lets it resume another one, with the
    extensions for both. Without `table`, nothing.
    """
    if table is None:
        return None, None, ()
    resumption, handover = ServerResumption(limits, table, place), ServerHandover(table)
    return resumption, handover, (Resume(resumption), Resuming(handover.takeover))


def key_of(token: bytes) -> bytes:
    """Return the hash by which a token is looked up."""
    return sha256(token).digest()
