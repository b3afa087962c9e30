"""A link that is lost and resumed: the acts of the runtime between two links, in steps.

Rules of this file, which are those of the runtime:

* A loss takes the bytes under way with it; a chunk may have arrived by half. Each side decodes all
  that had arrived before the next link.
* The server sends on the next link only when the client's first bytes have come.
  Until then that link may also be lost.
* Programs act between two links. If a program has closed its session then, no link comes, and the
  other session also ends.
"""

from typing import TYPE_CHECKING, Final

from campaigns.model._parties import Broken
from penstock.api import ConnectionLost, Role
from penstock.session import (
    ActiveResume,
    ConnectionState,
    Resume,
    RetainedBytes,
    Session,
    retain,
    rewind,
)
from penstock.session._resume import ACKNOWLEDGE_SECONDS

if TYPE_CHECKING:
    from campaigns.model._world import Side, Step, World

TOKEN: Final = bytes(32)

NO_MOST: Final = 1 << 40

AN_ACKNOWLEDGEMENT: Final = 16
"""Bytes of an acknowledgement, at most. Acknowledgements are not acknowledged."""


class Keeping:
    """One session's resume: it owns the extension, as the runtime's resumption does."""

    def __init__(self, limit: int) -> None:
        self.active: ActiveResume | None = None
        self.session: Session
        self.is_awaiting = False
        self.retained = RetainedBytes(limit, NO_MOST)
        self.received = 0
        """The session's count. Here, so that it tells one state from another:
        it decides what goes again.
        """

    def make_extension(self) -> Resume:
        """Return the extension."""
        return Resume(self)

    def begin(self, session: Session) -> None:
        """Keep what `session` sends."""
        self.session = session
        retain(session.outbox, self.retained)

    def start(self, token: bytes | None) -> None:
        """Begin to acknowledge: the session is open."""
        assert self.active is not None, "the hellos list the extension"
        self.active.start(self.session, token, 60.0)

    # --- for the extension

    def bind(self, active: ActiveResume) -> None:
        self.active = active

    def on_token(self, token: bytes, seconds: float) -> None:
        if (token, seconds) != (TOKEN, 60.0):
            raise Broken("the client got another token than the server's")

    def on_input(self) -> None:
        self.is_awaiting = False

    # --- the steps

    @property
    def is_due(self) -> bool:
        """An acknowledgement is due, as soon as its time has come."""
        return self.active is not None and self.active._due is not None

    def acknowledge(self) -> None:
        """Let the time of the acknowledgement come."""
        assert self.active is not None
        self.active.tick(ACKNOWLEDGE_SECONDS)
        self.active.tick(ACKNOWLEDGE_SECONDS)

    def go_on(self, position: int) -> None:
        """Send everything behind `position` on the next link."""
        assert self.active is not None
        rewind(self.session.outbox, position)
        self.active.note_acknowledged()
        self.session.channel.dialect.on_next_link()  # type: ignore[attr-defined]  # the dialect of RS.io has it


class ResumedLink:
    """The links of a scenario, one after another."""

    def __init__(self, world: "World", losses: int) -> None:
        self.world = world
        self.losses = losses
        """How often the link may still be lost."""
        self.is_up = True
        self.early = world.scenario.early_acknowledgements
        """How many acknowledgements may still come early."""
        self.is_server_back = False
        """The server has the next link, and the client has not got its answer."""

    def start(self) -> None:
        """Begin to acknowledge, on both sides."""
        for side in self.world.sides.values():
            side.keeping.start(TOKEN if side.role is Role.SERVER else None)

    def steps(self, *, others: bool) -> list["Step"]:
        """Return what may come next. `others` says that other steps are under way."""
        sides = list(self.world.sides.values())
        if any(side.session.state is not ConnectionState.OPEN for side in sides):
            return [
                ("give up", number)
                for number, side in enumerate(sides)
                if not self.is_up and not side.session.state.is_over
            ]
        found = []
        # The time of an acknowledgement comes early for some of them, and for the others when
        # nothing else is under way: with all orders of all of them, a walk took ten times its
        # states.
        if self.early or not others:
            found += [
                ("acknowledge", number) for number, side in enumerate(sides) if side.keeping.is_due
            ]
        if self.losses and (self.is_up or self.is_server_back):
            found += [
                ("lose", half)
                for half in range(3)
                if half == 0 or len((sides[half - 1].arriving or [b""])[0]) > 1
            ]
        if not self.is_up and not any(side.has_more for side in sides):
            found.append(("come back", 0 if self.is_server_back else 1))
        return found

    def take(self, name: str, number: int) -> None:
        """Take one step."""
        side = list(self.world.sides.values())[number - 1 if name == "lose" else number]
        if name == "acknowledge":
            side.keeping.acknowledge()
            self.early = max(0, self.early - 1)
        elif name == "lose":
            if number:
                half = side.arriving[0][: len(side.arriving[0]) // 2]
                side.has_more = side.session.receive(
                    half, 0.0, most=1 if self.world.scenario.by_message else 1 << 62
                )
            self._lose()
        elif name == "come back":
            self._come_back(side)
        else:
            side.is_closed = True
            side.session.end_of_input(
                ConnectionLost("the connection was not resumed", resumable=False)
            )

    def _lose(self) -> None:
        self.losses -= 1
        self.is_up = self.is_server_back = False
        for side in self.world.sides.values():
            side.arriving.clear()
            side.keeping.is_awaiting = False

    def _come_back(self, side: "Side") -> None:
        keeping = side.keeping
        keeping.go_on(self.world.other(side).session.received_bytes)
        if side.role is Role.SERVER:
            self.is_server_back = keeping.is_awaiting = True
            return
        self.is_server_back, self.is_up = False, True
        assert keeping.active is not None
        keeping.active.acknowledge()  # first of all: the server waits for something
        for each in self.world.sides.values():
            each.has_to_send = not each.session.outbox.is_empty

    def may_send(self, side: "Side") -> bool:
        """Return whether the writer of `side` has a link."""
        return self.is_up and not side.keeping.is_awaiting

    # --- what must be true

    def check(self) -> None:
        """Check the positions, in any state."""
        for side in self.world.sides.values():
            session, retained = side.session, side.keeping.retained
            other = self.world.other(side)
            if session.state.is_closing or other.session.state.is_closing:
                continue
            under_way = sum(map(len, other.arriving))
            if self.may_send(side) and retained.sent != other.session.received_bytes + under_way:
                raise Broken(
                    f"the {side.role.value} counts {retained.sent} bytes that it has sent; "
                    f"{other.session.received_bytes} have come, and "
                    f"{under_way} are under way"
                )
            if retained.acknowledged > other.session.received_bytes:
                raise Broken(
                    f"{retained.acknowledged} bytes are acknowledged to the {side.role.value}, and "
                    "fewer have come"
                )
            if (
                session.outbox.taken_bytes != retained.sent
                or retained.held < retained.sent - retained.acknowledged
            ):
                raise Broken(f"the {side.role.value} keeps less than what is not acknowledged")

    def check_rest(self) -> None:
        """Check what is kept if nothing is under way."""
        for side in self.world.sides.values():
            retained = side.keeping.retained
            if side.session.state is not ConnectionState.OPEN:
                continue
            least = retained.sent - retained.acknowledged
            if least > AN_ACKNOWLEDGEMENT * (2 + self.world.scenario.losses):
                raise Broken(
                    f"{least} bytes of the {side.role.value} are not acknowledged, and no "
                    "acknowledgement is due"
                )
