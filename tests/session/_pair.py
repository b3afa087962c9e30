"""Two sessions over a fake wire, a publisher and a subscriber for tests to drive,
and a peer that sends raw messages.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any

from penstock.api import Extension, Limits, PenstockError, Role, Subscriber, Subscription
from penstock.protocols import rsio
from penstock.protocols.rsio import RsioDialect
from penstock.session import DialectSettings, Fault, SendingStream, Session
from penstock.testing import MessageList

LIMITS = Limits()


class RecordingDelegate:
    """Drives one session: serves `publishers` by name, and records the session's calls."""

    def __init__(
        self, role: Role, limits: Limits = LIMITS, extensions: Sequence[Extension] = ()
    ) -> None:
        self.publishers: dict[str, ScriptedPublisher] = {}
        self.calls: dict[str, Subscription] = {}
        """Calls with one answer, by name: each is accepted in the place of a publisher."""
        self.served: list[SendingStream] = []
        self.failures: list[BaseException] = []
        self.refusals: list[tuple[Any, str]] = []
        self.introductions: list[bytes] = []
        self.fired_targets: list[Any] = []
        self.is_open = False
        self.ended: list[Exception] = []
        self.warnings: list[PenstockError] = []
        self.wakes = 0
        self.identity: Any = "the peer"
        self.principal: Any = None
        self.awaited: list[tuple[Any, Callable[[Any, Exception | None], None]]] = []
        self.session = Session(
            self,
            lambda session: RsioDialect(session, DialectSettings(extensions=extensions)),
            role=role,
            limits=limits,
            random=lambda: 0.5,
        )
        self.session.start(0.0)

    def identify(self) -> Any:
        return self.identity

    def recognise(self, principal: Any, /) -> None:
        self.principal = principal

    def await_result(
        self, awaitable: Awaitable[Any], then: Callable[[Any, Exception | None], None], /
    ) -> None:
        self.awaited.append((awaitable, then))

    def wake(self) -> None:
        self.wakes += 1

    def on_open(self) -> None:
        self.is_open = True

    def serve(self, stream: SendingStream, /) -> None:
        self.served.append(stream)
        script = self.publishers.get(stream.target)
        if stream.target in self.calls:
            stream.accept_call(self.calls[stream.target])
        elif script is None:
            stream.refuse("no such publisher", fault=Fault.UNTOUCHED)
        else:
            stream.accept(
                element_size=script.element_size, idle_until_demand=script.idle_until_demand
            )

    def source_of(self, stream: SendingStream, /) -> Any:
        return self.publishers.get(stream.target)

    def attach(self, stream: SendingStream, /) -> None:
        self.publishers[stream.target].attach(stream)

    def on_introduction(self, data: bytes, /) -> None:
        self.introductions.append(data)

    def on_fire_and_forget(self, target: Any, /) -> None:
        self.fired_targets.append(target)

    def stop_publishers(self, publishers: Sequence[Subscription], /) -> None:
        """Cancel each of the publishers."""
        for each in publishers:
            each.cancel()

    def on_stream_refused(self, stream: SendingStream, reason: str, /) -> None:
        self.refusals.append((stream.target, reason))

    def on_publisher_failed(self, stream: SendingStream, error: BaseException, /) -> None:
        self.failures.append(error)

    def on_warning(self, warning: PenstockError, /) -> None:
        self.warnings.append(warning)

    def on_end(self, error: Exception, /) -> None:
        self.ended.append(error)


class ScriptedPublisher(Subscription):
    """A publisher that signals when the test says so, and records its requests and cancels."""

    def __init__(self, *, element_size: int = 0, idle_until_demand: bool = False) -> None:
        self.element_size = element_size
        self.idle_until_demand = idle_until_demand
        self.requests: list[int] = []
        self.cancels = 0
        self.subscriber: Subscriber[Any] | None = None

    @property
    def demand(self) -> int:
        return sum(self.requests)

    def attach(self, subscriber: Subscriber[Any]) -> None:
        self.subscriber = subscriber
        subscriber.on_subscribe(self)

    def request(self, n: int, /) -> None:
        self.requests.append(n)

    def cancel(self, /) -> None:
        self.cancels += 1

    def emit(self, *elements: Any) -> None:
        assert self.subscriber is not None
        for element in elements:
            self.subscriber.on_next(element)

    def complete(self) -> None:
        assert self.subscriber is not None
        self.subscriber.on_complete()

    def fail(self, error: BaseException) -> None:
        assert self.subscriber is not None
        self.subscriber.on_error(error)


class RecordingSubscriber(Subscriber[Any]):
    """A subscriber that requests when the test says so, and records its elements and its end."""

    def __init__(self, demand: int = 0) -> None:
        self.demand = demand
        self.elements: list[Any] = []
        self.ends: list[Any] = []
        self.subscription: Subscription | None = None

    def on_subscribe(self, subscription: Subscription, /) -> None:
        self.subscription = subscription
        if self.demand:
            subscription.request(self.demand)

    def on_next(self, element: Any, /) -> None:
        self.elements.append(element)

    def on_error(self, error: BaseException, /) -> None:
        self.ends.append(error)

    def on_complete(self, /) -> None:
        self.ends.append("complete")

    def request(self, n: int) -> None:
        assert self.subscription is not None
        self.subscription.request(n)

    def cancel(self) -> None:
        assert self.subscription is not None
        self.subscription.cancel()


class Pair:
    """A client and a server, and the bytes between them."""

    def __init__(
        self,
        *,
        limits: Limits = LIMITS,
        extensions: Sequence[Extension] = (),
        server_extensions: Sequence[Extension] | None = None,
    ) -> None:
        self.client = RecordingDelegate(Role.CLIENT, limits, extensions)
        self.server = RecordingDelegate(
            Role.SERVER, limits, extensions if server_extensions is None else server_extensions
        )
        self.now = 0.0

    def settle(self, *, cut: int = 1 << 30) -> int:
        """Carry bytes both ways, in chunks of at most `cut`, until neither side has any.
        Return how many.
        """
        carried = 0
        while True:
            sent = [bytes(side.session.take()) for side in (self.client, self.server)]
            if not any(sent):
                return carried
            carried += sum(map(len, sent))
            for data, other in ((sent[0], self.server), (sent[1], self.client)):
                for start in range(0, len(data), cut):
                    other.session.receive(data[start : start + cut], self.now)

    def subscribe(self, name: str, demand: int = 0) -> RecordingSubscriber:
        subscriber = RecordingSubscriber(demand)
        self.client.session.subscribe(name, subscriber)
        return subscriber


class RawPeer:
    """One real session, and a peer that sends raw messages."""

    def __init__(
        self,
        role: Role = Role.SERVER,
        *,
        limits: Limits = LIMITS,
        extensions: Sequence[Extension] = (),
    ) -> None:
        self.delegate = RecordingDelegate(role, limits, extensions)
        self.session = self.delegate.session
        self.received = MessageList()
        self._decoder = rsio.RsioDecoder(self.received, self.received.streams)
        self.now = 0.0

    def handshake(self) -> "RawPeer":
        kind = rsio.ClientHello if self.session.channel.role is Role.SERVER else rsio.ServerHello
        self.send(kind())
        self.receive()
        return self

    def send(self, *messages: rsio.Message | bytes) -> None:
        for each in messages:
            self.session.receive(each if isinstance(each, bytes) else rsio.encode(each), self.now)

    def receive(self) -> list[rsio.Message]:
        """Return the messages that the session has sent since the last call."""
        self.received.messages.clear()
        while data := bytes(self.session.take()):
            self._decoder.feed(data)
        return list(self.received.messages)

    def goodbye_reason(self) -> str:
        """Return the reason of the goodbye that the session has sent last."""
        last = self.receive()[-1]
        assert isinstance(last, rsio.Goodbye), last
        return last.reason


def limits_with(
    *,
    glitches: float | None = None,
    controls: float | None = None,
    churn: float | None = None,
    per_second: float = 1e-9,
    **changes: Any,
) -> Limits:
    """The limits of a test: `LIMITS` with changes.

    `glitches`, `controls` and `churn` are budgets that a peer may use up. Nothing is added to them
    while the test runs, unless it says how much `per_second`.
    """
    for name, burst in (("glitch", glitches), ("control", controls), ("churn", churn)):
        if burst is not None:
            changes |= {f"{name}_burst": burst, f"{name}_rate": per_second}
    return replace(LIMITS, **changes)


def open_stream(
    pair: Pair, demand: int = 5, **script: Any
) -> tuple[ScriptedPublisher, RecordingSubscriber]:
    source = pair.server.publishers["s"] = ScriptedPublisher(**script)
    subscriber = pair.subscribe("s", demand)
    pair.settle()
    return source, subscriber


def subscribe_to(raw: RawPeer, demand: int, element_size: int = 0) -> RecordingSubscriber:
    subscriber = RecordingSubscriber(demand)
    raw.session.subscribe("s", subscriber)
    raw.send(rsio.OnSubscribe(subscriber=0, element_size=element_size))
    raw.receive()
    return subscriber
