"""Two sessions, the bytes between them, and the steps that may come next.

Each step is one call from outside: a delivery of bytes, a turn of a writer, or a call of a
subscriber, a publisher or a service. A session does no I/O and reads no clock, so a sequence of
steps has one result.
"""

from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, TypeAlias

from campaigns.model._check import check_rest, check_side, check_stream
from campaigns.model._parties import Broken, Failure, Publisher, Reader, element, reader_of
from campaigns.model._resumed_link import Keeping, ResumedLink
from campaigns.model._scenarios import REACTIVESOCKET, RSIO, Ending, Scenario
from penstock.api import ConnectionLost, PenstockError, Request, Role, Subscription
from penstock.api import Model as Shape
from penstock.protocols.reactivesocket import ReactiveSocketDialect
from penstock.protocols.rsio import Requests, RsioDialect
from penstock.session import (
    ConnectionState,
    Dialect,
    DialectHost,
    DialectSettings,
    SendingStream,
    Session,
)

Step: TypeAlias = tuple[str, int]
"""The kind of a step, and its stream or side."""

SIDES: Final = (Role.CLIENT, Role.SERVER)
DIALECTS: Final[dict[str, Callable[[DialectHost, DialectSettings], Dialect]]] = {
    RSIO: RsioDialect,
    REACTIVESOCKET: ReactiveSocketDialect,
}

BEGINNINGS: Final = {"subscribe", "request", "cancel", "close", "cut", "lose", "forge"}
"""Steps that a program may take, and need not."""

EVERY_MESSAGE: Final = 1 << 62

END: Final = b""
"""On the link: the peer has closed the transport after its last bytes."""


class Side:
    """One session with its link to the other side. The session's delegate."""

    def __init__(self, world: "World", role: Role, protocol: str) -> None:
        scenario = world.scenario
        self.world = world
        self.role = role
        self.has_to_send = False
        """The session has called `wake` since the writer's last turn."""
        self.arriving: deque[bytes] = deque()
        """The chunks that are under way to this side."""
        self.has_more = False
        """The session has received bytes, and not acted on all of them."""
        self.is_closed = False
        """This side has closed the transport:
        the other side finds its end behind the last bytes.
        """
        self.ends = 0
        self.has_called_close = False
        self.waiting: dict[int, SendingStream] = {}
        """Streams whose service has not decided, by the index of their script."""
        self.keeping = Keeping(scenario.resume_bytes)
        extensions = [Requests()] if world.has_calls else []
        settings = DialectSettings(
            extensions=[*extensions, self.keeping.make_extension()]
            if scenario.losses
            else extensions
        )
        dialect = DIALECTS[protocol]
        self.session = Session(
            self,
            lambda host: dialect(host, settings),
            role=role,
            limits=scenario.limits,
            random=float,
        )
        if scenario.losses:
            self.keeping.begin(self.session)
        self.session.start(0.0)

    # --- the session's delegate

    def wake(self) -> None:
        self.has_to_send = True

    def identify(self) -> str:
        return "the peer"

    def recognise(self, principal: Any, /) -> None:
        raise Broken("a principal was recognised, and no extension does that")

    def await_result(
        self, awaitable: Awaitable[Any], then: Callable[[Any, Exception | None], None], /
    ) -> None:
        raise Broken("something is awaited, and no extension does that")

    def on_open(self) -> None:
        """Do nothing: the state of the session says it."""

    def on_introduction(self, data: bytes, /) -> None:
        self.session.admit()

    def serve(self, stream: SendingStream, /) -> None:
        index = self.world.index_of(stream)
        if self.world.scenario.scripts[index].decides_late:
            self.waiting[index] = stream
        else:
            self.world.decide(index, stream)

    def attach(self, stream: SendingStream, /) -> None:
        self.world.publishers[self.world.index_of(stream)].attach(stream)

    def on_publisher_failed(self, stream: SendingStream, error: BaseException, /) -> None:
        if not isinstance(error, Failure):
            raise Broken(f"a publisher failed with {error!r}, which it never signalled")

    def stop_publishers(self, publishers: Sequence[Subscription], /) -> None:
        """Cancel each of the publishers."""
        for each in publishers:
            each.cancel()

    def on_stream_refused(self, stream: SendingStream, reason: str, /) -> None:
        if self.world.scenario.scripts[self.world.index_of(stream)].ending is not Ending.REFUSED:
            raise Broken(f"a stream that no service refused was refused: {reason}")

    def on_fire_and_forget(self, target: Any, /) -> None:
        raise Broken("a request without an answer came, and none was sent")

    def on_warning(self, warning: PenstockError, /) -> None:
        if any(publisher.forged for publisher in self.world.publishers):
            return
        raise Broken(f"the peer did nothing wrong, and there is a warning: {warning}")

    def on_end(self, error: Exception, /) -> None:
        self.ends += 1
        if self.ends > 1:
            raise Broken(f"the end of the {self.role.value}'s session was reported twice")


class World:
    """A state: what both sessions, the link and the programs on both sides hold."""

    def __init__(self, scenario: Scenario, protocol: str) -> None:
        self.scenario = scenario
        self.has_calls = any(script.is_call for script in scenario.scripts) and protocol == RSIO
        self.is_cut = False
        self.readers = [reader_of(index, script) for index, script in enumerate(scenario.scripts)]
        self.publishers = [
            Publisher(index, script) for index, script in enumerate(scenario.scripts)
        ]
        self.sides = {role: Side(self, role, protocol) for role in SIDES}
        self.link = ResumedLink(self, scenario.losses)
        if not scenario.from_hello:
            self._settle()
        if scenario.losses:
            self.link.start()
            self._settle()
        for reader in self.readers:
            if reader.script.is_open:
                self._subscribe(reader)
        if any(script.is_open for script in scenario.scripts):
            self._settle()

    # --- the steps

    def steps(self) -> list[Step]:
        """Return each step that may come next."""
        found: list[Step] = []
        for index, reader in enumerate(self.readers):
            found += [(name, index) for name in (*reader.steps(), *self.publishers[index].steps())]
            found += [("decide", index)] if index in self._of_publisher(index).waiting else []
            found += [("forge", index)] if self._may_forge(index) else []
        for number, side in enumerate(self.sides.values()):
            found += [(name, number) for name in self._steps_of(side)]
        if self.scenario.is_cut and not self.is_cut:
            found.append(("cut", 0))
        return (
            [*found, *self.link.steps(others=not self.is_at_rest(found))]
            if self.scenario.losses
            else found
        )

    def take(self, step: Step) -> None:
        """Take one step, and check what must be true in every state."""
        name, number = step
        if name in {"send", "deliver", "close", "tick", "hang up"}:
            self._act(name, list(self.sides.values())[number])
        elif name in {"lose", "come back", "acknowledge", "give up"}:
            self.link.take(name, number)
        elif name == "cut":
            self._cut()
        elif name == "subscribe":
            self._subscribe(self.readers[number])
        elif name == "decide":
            self.decide(number, self._of_publisher(number).waiting.pop(number))
        elif name == "forge":
            self._forge(number)
        elif name in {"request", "cancel", "read"}:
            getattr(self.readers[number], name)()
        else:
            getattr(self.publishers[number], name)()
        self._check()

    def _steps_of(self, side: Side) -> list[str]:
        session = side.session
        found = []
        if self.scenario.losses and not self.link.may_send(side):
            pass  # waiting bytes go over the next link
        elif side.has_to_send or session.outbox.needs_turn:
            found.append("send")
        elif session.state.is_over and not side.is_closed:
            found.append("hang up")
        elif session.state is ConnectionState.CLOSING_UNANSWERED:
            found.append("tick")
        if side.arriving or side.has_more:
            found.append("deliver")
        if (
            side.role in self.scenario.closes
            and not side.has_called_close
            and not session.state.is_over
        ):
            found.append("close")
        return found

    def _act(self, name: str, side: Side) -> None:
        session = side.session
        if name == "send":
            self._send(side)
        elif name == "close":
            side.has_called_close = True
            session.close("bye")
        elif name == "tick":
            session.tick(0.0)
        elif name == "hang up":
            side.is_closed = True
            if not self.is_cut:
                self.other(side).arriving.append(END)
        elif side.has_more:
            side.has_more = session.receive(b"", 0.0, most=1)
        elif (chunk := side.arriving.popleft()) == END:
            session.end_of_input(
                ConnectionLost("cut") if self.is_cut else None, is_clean=not self.is_cut
            )
        else:
            side.has_more = session.receive(
                chunk, 0.0, most=1 if self.scenario.by_message else EVERY_MESSAGE
            )

    def _send(self, side: Side) -> None:
        """Give the writer a turn."""
        outbox = side.session.outbox
        if outbox.is_empty and outbox.needs_turn:
            outbox.take_turn()
        data = bytes(side.session.take())
        # As the runtime's writer does, which looks by itself whether there is more.
        side.has_to_send = not outbox.is_empty
        if data and not self.is_cut and not side.is_closed:
            self.other(side).arriving.append(data)

    def _cut(self) -> None:
        self.is_cut = True
        for side in self.sides.values():
            side.arriving = deque((END,))

    def _may_forge(self, index: int) -> bool:
        script, publisher = self.scenario.scripts[index], self.publishers[index]
        return script.forged > publisher.forged and publisher.has_begun

    def _forge(self, index: int) -> None:
        """Send elements of a stream past its session: the peer breaks a rule."""
        script, publisher = self.scenario.scripts[index], self.publishers[index]
        side = self._of_publisher(index)
        stream_id, dialect = publisher.subscriber.id, side.session.channel.dialect
        publisher.forged = script.forged
        elements = [element(number, script.size) for number in range(script.forged)]
        data = bytearray()
        if script.is_fixed:
            dialect.write_packed(data, stream_id, script.size, bytearray().join(elements))
        else:
            data += dialect.join_run(stream_id, elements)
        self.other(side).arriving.append(bytes(data))

    def _subscribe(self, reader: Reader) -> None:
        reader.is_subscribed = True
        name = str(reader.index)
        target: Any = Request(Shape.RESPONSE, name.encode()) if reader.script.is_call else name
        self.sides[reader.script.reader].session.streams.subscribe(target, reader, reader.window)

    def decide(self, index: int, stream: SendingStream) -> None:
        """Accept or refuse a stream, as its script says."""
        script = self.scenario.scripts[index]
        if stream.is_ended:
            return
        if script.ending is Ending.REFUSED:
            self.publishers[index].is_refused = True
            stream.refuse("no")
        elif script.is_call:
            self.publishers[index].answer_to(stream)
        else:
            stream.accept(
                element_size=script.size if script.is_fixed else 0,
                idle_until_demand=script.idle_until_demand,
            )

    # --- facts

    def other(self, side: Side) -> Side:
        """Return the other side."""
        return self.sides[SIDES[1 - SIDES.index(side.role)]]

    def index_of(self, stream: SendingStream) -> int:
        """Return the index of a stream's script."""
        target = stream.target
        return int(target.data if isinstance(target, Request) else target)

    @property
    def is_ending(self) -> bool:
        """The connection was closed or cut."""
        return self.is_cut or any(side.has_called_close for side in self.sides.values())

    def _of_publisher(self, index: int) -> Side:
        return self.other(self.sides[self.scenario.scripts[index].reader])

    def _settle(self) -> None:
        """Deliver everything: the handshake, and the subscribes of streams
        that are open from the start.
        """
        while any(
            side.has_to_send or side.arriving or side.has_more for side in self.sides.values()
        ):
            for side in self.sides.values():
                for name in self._steps_of(side):
                    if name in {"send", "deliver"}:
                        self._act(name, side)

    # --- what must be true

    def _check(self) -> None:
        """Check what must be true in every state."""
        for reader, publisher in zip(self.readers, self.publishers, strict=True):
            check_stream(reader, publisher, is_ending=self.is_ending)
        if self.scenario.losses:
            for side in self.sides.values():
                side.keeping.received = side.session.received_bytes
            self.link.check()
        if not self.is_ending:
            for side in self.sides.values():
                if side.session.state.is_closing:
                    raise Broken(
                        f"neither side was closed, and the {side.role.value}'s session has ended: "
                        f"{side.session.close_reason}"
                    )

    @staticmethod
    def is_at_rest(steps: list[Step]) -> bool:
        """Return whether nothing is under way: only new acts of the programs could follow."""
        return all(name in BEGINNINGS for name, _ in steps)

    def check_rest(self) -> None:
        """Check what must be true if nothing is under way."""
        for reader, publisher in zip(self.readers, self.publishers, strict=True):
            check_rest(reader, publisher, is_ending=self.is_ending)
        for side in self.sides.values():
            check_side(side.session, is_ending=self.is_ending, reports=side.ends)
        if self.scenario.losses:
            self.link.check_rest()
