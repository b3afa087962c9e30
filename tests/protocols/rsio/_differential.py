"""Feeds the same bytes to two implementations of RS.io:
a session of penstock, and the reference codec.

Each implementation has subscribed to three streams and cancelled the last of them, has one
publisher, "s", and has the extension 200, whose messages have the type 0x60. Each returns an
`Outcome`, and the two must be equal.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import attrs

from penstock.api import (
    UNBOUNDED,
    ActiveExtension,
    ConnectionLost,
    ExtensionLink,
    Limits,
    PenstockError,
    ProtocolError,
    PublisherFailed,
    Rejected,
    Role,
    Subscriber,
    Subscription,
)
from penstock.protocols import rsio
from penstock.protocols.rsio import RsioDialect
from penstock.session import DialectSettings, SendingStream, Session
from penstock.testing import MessageList
from tests.protocols.rsio import _reference_codec as reference

DEMANDS = (3, UNBOUNDED, UNBOUNDED)
CANCELLED = 2
EXTENSION = 200
CODE = 0x60
NAMES = {
    "Subscribe": "subscribe",
    "Cancel": "cancel",
    "OnSubscribe": "onSubscribe",
    "OnComplete": "onComplete",
    "OnError": "onError",
    "ClientHello": "clientHello",
    "ServerHello": "serverHello",
    "Goodbye": "goodbye",
}

SPEC_LIMITS = reference.Limits(extensions=4, name=16, text=20, reason=20, body=64, element_size=64)
JOINED, PARTS, UNFINISHED = 100, 5, 2
LIMITS = replace(
    Limits(),
    hello_extensions=4,
    max_name=16,
    max_error_text=20,
    max_reason=20,
    max_frame=64,
    max_element=JOINED,
    max_parts=PARTS,
    max_partials=UNFINISHED,
    # The reference codec has no limits of rate, so penstock must not reach its own.
    glitch_burst=1e9,
    control_burst=1e9,
    churn_burst=1e9,
    outbound_control_count=10**9,
)


@dataclass
class Outcome:
    """The effects of the bytes on one implementation."""

    messages: list[reference.Message] = field(default_factory=list)
    elements: list[list[bytes]] = field(default_factory=lambda: [[] for _ in DEMANDS])
    ends: list[list[str]] = field(default_factory=lambda: [[] for _ in DEMANDS])
    reason: str | None = None
    """The reason of the goodbye that it sends; None if it sends none."""
    decided_at: int | None = None
    """The number of bytes that it took before it refused the rest."""


# ---- the reference codec


def run_reference(data: bytes, *, is_server: bool) -> Outcome:
    """Feed `data` to the reference codec, byte by byte."""
    outcome = Outcome()
    decoder = reference.Decoder(is_server, SPEC_LIMITS, {EXTENSION: frozenset({CODE})})
    incoming: dict[int, reference.Incoming] = {}
    for stream_id, demand in enumerate(DEMANDS):
        decoder.on_subscribe_sent(stream_id)
        if stream_id != CANCELLED:
            incoming[stream_id] = reference.Incoming(
                demand, joined_limit=JOINED, parts_limit=PARTS, unfinished_limit=UNFINISHED
            )
    begun: set[int] = set()
    for byte in data:
        for message in decoder.feed([byte]):
            outcome.messages.append(message)
            _act(message, decoder, incoming, begun, outcome)
        if decoder.refused is not None or decoder.said_goodbye:
            outcome.decided_at = decoder.consumed
            outcome.reason = "" if decoder.said_goodbye else decoder.refused
            _lose(decoder, incoming, outcome, is_server=is_server)
            break
    return outcome


def _act(
    message: reference.Message,
    decoder: reference.Decoder,
    incoming: dict[int, reference.Incoming],
    begun: set[int],
    outcome: Outcome,
) -> None:
    """The effects of a message on streams, from the tables of the page."""
    match message:
        case ("subscribe", name, stream_id, _) if name != "s":
            decoder.on_end_sent(stream_id)  # no such publisher
        case ("request", stream_id, 0):
            decoder.on_end_sent(stream_id)  # illegal demand
        case (
            "onSubscribe"
            | "onNext"
            | "onNextPacked"
            | "onNextPart"
            | "onNextLastPart"
            | "onComplete"
            | "onError" as name,
            stream_id,
            *_,
        ):
            stream = incoming.get(stream_id)
            if stream is None:
                return  # cancelled: the message is dropped
            try:
                outcome.elements[stream_id] += stream.accept(message)
            except reference.MustCancel:
                outcome.ends[stream_id].append("broken")
                del incoming[stream_id]
                return
            if name in ("onComplete", "onError"):
                refused = name == "onError" and stream_id not in begun
                outcome.ends[stream_id].append("refused" if refused else name)
                del incoming[stream_id]
            begun.add(stream_id)


def _lose(
    decoder: reference.Decoder,
    incoming: dict[int, reference.Incoming],
    outcome: Outcome,
    *,
    is_server: bool,
) -> None:
    """End the open streams with the connection. A server of another version has discarded
    everything before its hello.
    """
    greeted = bool(outcome.messages) and outcome.messages[0][0] != "goodbye"
    told = outcome.messages[0][1] if outcome.messages and not greeted else ""
    discarded = decoder.refused == "version 0" or (
        not is_server and not greeted and told.startswith("version ")
    )
    for stream_id in incoming:
        outcome.ends[stream_id].append("discarded" if discarded else "lost")


# ---- penstock


class _Reader(Subscriber[Any]):
    """Collects elements and ends."""

    def __init__(self, demand: int, elements: list[bytes], ends: list[str]) -> None:
        self._demand = demand
        self._elements = elements
        self._ends = ends

    def on_subscribe(self, subscription: Subscription, /) -> None:
        self.subscription = subscription
        subscription.request(self._demand)

    def on_next(self, element: Any, /) -> None:
        self._elements.append(element)

    def on_error(self, error: BaseException, /) -> None:
        match error:
            case ProtocolError():
                self._ends.append("broken")
            case ConnectionLost():
                self._ends.append("lost")
            case Rejected(processed=processed):
                self._ends.append("refused" if processed else "discarded")
            case _:
                assert isinstance(error, PublisherFailed), error
                self._ends.append("onError")

    def on_complete(self, /) -> None:
        self._ends.append("onComplete")


def assert_size(elements: Sequence[bytes], size: int) -> None:
    """Assert that `size` is what the elements have."""
    assert size == sum(map(len, elements))


class _RecordingStream:
    """Records the calls of the decoder, and passes them on to the stream of the session."""

    def __init__(self, stream: rsio.WireStream, stream_id: int, penstock: "Penstock") -> None:
        self._stream, self._id, self._penstock = stream, stream_id, penstock
        self.element_size = stream.element_size

    def receive_element(self, element: bytes, /) -> None:
        self._penstock.note("onNext", self._id, element)
        self._stream.receive_element(element)

    def receive_run(self, elements: Sequence[bytes], size: int = -1, /) -> None:
        assert_size(elements, size)
        for element in elements:
            self._penstock.note("onNext", self._id, element)
        self._stream.receive_run(elements, size)

    def receive_packed(self, count: int, elements: bytes, /) -> None:
        size = self.element_size
        assert len(elements) == count * size
        self._penstock.note(
            "onNextPacked",
            self._id,
            tuple(elements[at : at + size] for at in range(0, len(elements), size)),
        )
        self._stream.receive_packed(count, elements)

    def receive_part(self, element: int, data: bytes, last: bool, /) -> None:
        self._penstock.note("onNextLastPart" if last else "onNextPart", self._id, element, data)
        self._stream.receive_part(element, data, last)


class _RecordingStreams(Mapping[int, rsio.WireStream]):
    """The table of the session, with a recorder around each stream."""

    def __init__(self, penstock: "Penstock") -> None:
        self._penstock = penstock

    def __getitem__(self, stream_id: int) -> rsio.WireStream:
        return _RecordingStream(
            self._penstock.session.streams.opened[stream_id], stream_id, self._penstock
        )

    def __iter__(self) -> Iterator[int]:
        return iter(self._penstock.session.streams.opened)

    def __len__(self) -> int:
        return len(self._penstock.session.streams.opened)


class _Dialect(RsioDialect):
    """The dialect, with a record of the calls of its decoder."""

    def __init__(self, session: Session, penstock: "Penstock") -> None:
        super().__init__(session, DialectSettings(extensions=[_Extension()]))
        penstock.session = session
        self._penstock = penstock
        limits = rsio.WireLimits(frame=64, name=16, text=20, reason=20, extensions=4)
        self._decoder = rsio.RsioDecoder(self, _RecordingStreams(penstock), limits)

    def receive_request(self, subscriber: int, demand: int) -> None:
        self._penstock.note("request", subscriber, demand)
        super().receive_request(subscriber, demand)

    def receive_on_subscribe(self, subscriber: int, element_size: int) -> None:
        message = rsio.OnSubscribe(subscriber=subscriber, element_size=element_size)
        self.record(message, super().receive_on_subscribe, subscriber, element_size)

    def receive_on_complete(self, subscriber: int) -> None:
        self.record(rsio.OnComplete(subscriber=subscriber), super().receive_on_complete, subscriber)

    def receive_control(self, message: rsio.Message) -> None:
        self.record(message, super().receive_control, message)

    def record(self, message: rsio.Message, act: Callable[..., None], *arguments: Any) -> None:
        """Record `message` before the messages that `act` records, unless `act` raises."""
        was_closing, before = self._session.state.is_closing, len(self._penstock.outcome.messages)
        act(*arguments)
        if not was_closing and not (
            isinstance(message, rsio.ClientHello | rsio.ServerHello) and message.version
        ):
            self._penstock.outcome.messages.insert(before, _as_tuple(message))


def _as_tuple(message: rsio.Message) -> reference.Message:
    match message:
        case rsio.Subscribe(publisher=name, subscriber=stream_id, demand=demand):
            return (
                "subscribe",
                name if name.isascii() or _is_text(name) else None,
                stream_id,
                demand,
            )
        case rsio.ExtensionMessage(type=code, body=body):
            return ("extension", code, body)
        case _:
            kind = NAMES[type(message).__name__]
            return (kind, *attrs.astuple(message, recurse=False))


def _is_text(name: str) -> bool:
    return not any("\udc80" <= letter <= "\udcff" for letter in name)


class _Extension:
    """An extension that accepts every message of its type."""

    id = EXTENSION
    name = "any"
    codes = frozenset({CODE})

    def open(self, link: ExtensionLink, now: float, /) -> ActiveExtension:
        return self

    def received(self, type: int, body: bytes, now: float, /) -> None:  # noqa: A002  # the wire's word
        assert type == CODE


class Penstock(Subscription):
    """A session of penstock, and its delegate with one publisher, which emits nothing."""

    session: Session

    def __init__(self, *, is_server: bool) -> None:
        self.outcome = Outcome()
        role = Role.SERVER if is_server else Role.CLIENT
        Session(
            self,
            lambda session: _Dialect(session, self),
            role=role,
            limits=LIMITS,
            random=lambda: 0.5,
        ).start(0.0)
        for demand, elements, ends in zip(
            DEMANDS, self.outcome.elements, self.outcome.ends, strict=True
        ):
            reader = _Reader(demand, elements, ends)
            self.session.subscribe("theirs", reader)
        reader.subscription.cancel()
        self.session.take()

    def note(self, *message: Any) -> None:
        if not self.session.state.is_closing:
            self.outcome.messages.append(message)

    def feed(self, data: bytes, pieces: Sequence[int]) -> Outcome:
        """Feed `data` in pieces of these sizes; the last size is repeated."""
        at = number = 0
        while at < len(data) and not self.session.state.is_closing:
            size = pieces[min(number, len(pieces) - 1)]
            self.session.receive(data[at : at + size], 0.0)
            at, number = min(at + size, len(data)), number + 1
        if self.session.state.is_closing:
            self.outcome.decided_at = at
            self.outcome.reason = _reason(bytes(self.session.take()))
        return self.outcome

    # --- the delegate of the session

    def wake(self) -> None:
        pass

    def on_open(self) -> None:
        pass

    def serve(self, stream: SendingStream, /) -> None:
        if stream.target == "s":
            stream.accept()
        else:
            stream.refuse("no such publisher")

    def attach(self, stream: SendingStream, /) -> None:
        stream.on_subscribe(self)

    def stop_publishers(self, publishers: Sequence[Subscription], /) -> None:
        """Cancel each of the publishers."""
        for each in publishers:
            each.cancel()

    def on_stream_refused(self, stream: SendingStream, reason: str, /) -> None:
        """Ignore."""

    def on_publisher_failed(self, stream: SendingStream, error: BaseException, /) -> None:
        raise error

    def on_warning(self, warning: PenstockError, /) -> None:
        raise warning

    def on_end(self, error: Exception, /) -> None:
        pass

    def request(self, n: int, /) -> None:
        pass

    def cancel(self, /) -> None:
        pass


def _reason(sent: bytes) -> str:
    """The reason of the goodbye, which is the last message that was sent."""
    collected = MessageList()
    rsio.RsioDecoder(collected, collected.streams).feed(sent)
    last = collected.messages[-1]
    assert isinstance(last, rsio.Goodbye)
    return last.reason


def run_penstock(data: bytes, *, is_server: bool, pieces: Sequence[int] = (1 << 20,)) -> Outcome:
    """Feed `data` to a session of penstock, in pieces of these sizes."""
    return Penstock(is_server=is_server).feed(data, pieces)


def as_record(message: reference.Message) -> rsio.Message:
    """The same message as a record of penstock."""
    match message:
        case ("extension", code, body):
            return rsio.ExtensionMessage(type=code, body=body)
        case ("onNextPacked", stream_id, elements):
            return rsio.OnNextPacked(
                subscriber=stream_id, count=len(elements), elements=b"".join(elements)
            )
        case ("switchEncoding", extension):
            return rsio.SwitchEncoding(extension=extension)
        case (name, *fields):
            kind = cast("Any", getattr(rsio, name[0].upper() + name[1:]))
            return cast(
                "rsio.Message",
                kind(
                    **dict(zip((field.name for field in attrs.fields(kind)), fields, strict=True))
                ),
            )
    raise AssertionError(message)
