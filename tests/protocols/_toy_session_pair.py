"""Two sessions that speak the toy over a fake wire, and a peer that sends raw frames."""

from typing import Any

from penstock.api import Limits, Role
from penstock.session import DialectSettings, Session
from tests.protocols._toy_protocol import HELLO, LENGTH, VERSION, ToyDialect, frame
from tests.session._pair import LIMITS, RecordingDelegate, RecordingSubscriber, ScriptedPublisher

Frame = tuple[str, int, bytes]


class ToyDelegate(RecordingDelegate):
    def __init__(
        self, role: Role, limits: Limits = LIMITS, kind: type[ToyDialect] = ToyDialect
    ) -> None:
        super().__init__(role, limits)
        self.session = Session(
            self,
            lambda session: kind(session, DialectSettings()),
            role=role,
            limits=limits,
            random=lambda: 0.5,
        )
        self.session.start(0.0)

    @property
    def dialect(self) -> ToyDialect:
        assert isinstance(self.session.channel.dialect, ToyDialect)
        return self.session.channel.dialect

    def read(self, name: str, demand: int) -> RecordingSubscriber:
        reader = RecordingSubscriber(demand)
        self.session.subscribe(name, reader)
        return reader

    def publish(self, name: str, **script: Any) -> ScriptedPublisher:
        source = self.publishers[name] = ScriptedPublisher(**script)
        return source


class ToyPair:
    """A client and a server, and the wire between them. `sent` has all bytes that each has sent."""

    def __init__(self, limits: Limits = LIMITS, kind: type[ToyDialect] = ToyDialect) -> None:
        self.client = ToyDelegate(Role.CLIENT, limits, kind)
        self.server = ToyDelegate(Role.SERVER, limits, kind)
        self.sent = {Role.CLIENT: b"", Role.SERVER: b""}
        self.now = 0.0

    def settle(self, *, cut: int = 1 << 30) -> None:
        while True:
            sent = {
                side.session.channel.role: bytes(side.session.take())
                for side in (self.client, self.server)
            }
            if not any(sent.values()):
                return
            for role, data in sent.items():
                self.sent[role] += data
                other = self.server if role is Role.CLIENT else self.client
                for start in range(0, len(data), cut):
                    other.session.receive(data[start : start + cut], self.now)

    @property
    def is_idle(self) -> bool:
        return not any(
            side.session.streams.opened or side.session.streams.serving
            for side in (self.client, self.server)
        )

    def frames(self, role: Role) -> list[Frame]:
        return frames(self.sent[role])


class RawToy:
    """One real session, and a peer that sends raw frames."""

    def __init__(
        self, role: Role = Role.SERVER, limits: Limits = LIMITS, kind: type[ToyDialect] = ToyDialect
    ) -> None:
        self.delegate = ToyDelegate(role, limits, kind)
        self.session = self.delegate.session

    def handshake(self) -> "RawToy":
        self.send(frame(HELLO, 0, VERSION))
        self.receive()
        return self

    def send(self, *frames_sent: bytes) -> None:
        for each in frames_sent:
            self.session.receive(each, self.session.channel.now)

    def receive(self) -> list[Frame]:
        """Return the frames that the session has sent since the last call."""
        return frames(bytes(self.session.take()))


def frames(data: bytes) -> list[Frame]:
    found: list[Frame] = []
    while data:
        end = LENGTH + int.from_bytes(data[:LENGTH])
        found.append(
            (
                chr(data[LENGTH]),
                int.from_bytes(data[LENGTH + 1 : LENGTH + 5]),
                data[LENGTH + 5 : end],
            )
        )
        data = data[end:]
    return found
