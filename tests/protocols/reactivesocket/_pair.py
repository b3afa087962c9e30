"""Two sessions that speak ReactiveSocket over a fake wire, and a peer that sends raw frames."""

from collections.abc import Sequence
from typing import Any

from penstock.api import Extension, Limits, Model, Request, Role, Subscriber
from penstock.protocols import reactivesocket as wire
from penstock.protocols.reactivesocket import ReactiveSocketDialect
from penstock.session import DialectSettings, SendingStream, Session
from penstock.testing import FrameList
from tests.session._pair import LIMITS, RecordingDelegate, RecordingSubscriber, ScriptedPublisher


class RsDelegate(RecordingDelegate):
    """Serves `publishers` by the data of a request,
    and admits every client unless `waits` is set.
    """

    def __init__(
        self,
        role: Role,
        limits: Limits = LIMITS,
        extensions: Sequence[Extension] = (),
        setup: bytes = b"",
    ) -> None:
        super().__init__(role, limits)
        self.waits = False
        settings = DialectSettings(extensions=extensions, setup=setup)
        self.session = Session(
            self,
            lambda session: ReactiveSocketDialect(session, settings),
            role=role,
            limits=limits,
            random=lambda: 0.5,
        )
        self.session.start(0.0)

    def serve(self, stream: SendingStream, /) -> None:
        stream.target = f"{stream.target.model.name} {stream.target}"
        super().serve(stream)

    def on_introduction(self, data: bytes, /) -> None:
        super().on_introduction(data)
        if not self.waits:
            self.session.admit()


class RsPair:
    """A client and a server, and the wire between them."""

    def __init__(
        self,
        *,
        limits: Limits = LIMITS,
        extensions: Sequence[Extension] = (),
        server_extensions: Sequence[Extension] = (),
    ) -> None:
        self.client = RsDelegate(Role.CLIENT, limits, extensions, b"me")
        self.server = RsDelegate(Role.SERVER, limits, server_extensions)

    def settle(self, *, cut: int = 1 << 30) -> None:
        while True:
            sent = [bytes(side.session.take()) for side in (self.client, self.server)]
            if not any(sent):
                return
            for data, other in ((sent[0], self.server), (sent[1], self.client)):
                for start in range(0, len(data), cut):
                    other.session.receive(data[start : start + cut], 0.0)

    def ask(
        self, model: Model, data: bytes = b"s", demand: int = 5, **script: Any
    ) -> tuple[ScriptedPublisher, RecordingSubscriber]:
        """Send a request to the server, which has a publisher for it."""
        source = self.server.publishers[f"{model.name} {data.decode()}"] = ScriptedPublisher(
            **script
        )
        reader = RecordingSubscriber(demand)
        self.client.session.subscribe(Request(model, data), reader)
        self.settle()
        return source, reader


class RawSocket:
    """One real session, and a peer that sends raw frames."""

    def __init__(
        self,
        role: Role = Role.SERVER,
        *,
        limits: Limits = LIMITS,
        extensions: Sequence[Extension] = (),
    ) -> None:
        self.delegate = RsDelegate(role, limits, extensions)
        self.session = self.delegate.session
        self.received = FrameList()
        self._decoder = wire.ReactiveSocketDecoder(self.received, {})

    def handshake(self) -> "RawSocket":
        if self.session.channel.role is Role.SERVER:
            self.send(wire.Setup())
        self.receive()
        return self

    def send(self, *frames: wire.Frame | bytes) -> None:
        for each in frames:
            self.session.receive(each if isinstance(each, bytes) else wire.encode(each), 0.0)

    def receive(self) -> list[wire.Frame]:
        """Return the frames that the session has sent since the last call."""
        self.received.frames.clear()
        while data := bytes(self.session.take()):
            self._decoder.feed(data)
        return list(self.received.frames)

    def ask(
        self,
        model: Model = Model.STREAM,
        demand: int = 5,
        subscriber: Subscriber[Any] | None = None,
    ) -> RecordingSubscriber:
        """Let the session send a request to this peer; its first stream has id 1."""
        reader = RecordingSubscriber(demand)
        self.session.subscribe(Request(model, b"s"), subscriber or reader)
        self.receive()
        return reader

    def serve(self, name: str = "STREAM s", **script: Any) -> ScriptedPublisher:
        """Give the session a publisher."""
        source = self.delegate.publishers[name] = ScriptedPublisher(**script)
        return source
