"""Both readings of RS.io's wire fed with the same bytes: a session of penstock's, and the codec that was written from the page alone.

Each side has subscribed to three streams, of which it has cancelled the last; serves a publisher named "s" and no other; and has an
extension, 200, whose messages are of type 0x60. What each side makes of the bytes is an `Outcome`, and there must not be two.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

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
from tests.protocols.rsio import _spec as spec

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

SPEC_LIMITS = spec.Limits(extensions=4, name=16, text=20, reason=20, body=64, element_size=64)
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
    # What is counted over time is not for a codec to judge.
    glitch_burst=1e9,
    control_burst=1e9,
    churn_burst=1e9,
    outbound_control_count=10**9,
)


@dataclass
class Outcome:
    """What one side made of the bytes."""

    heard: list[spec.Message] = field(default_factory=list)
    elements: list[list[bytes]] = field(default_factory=lambda: [[] for _ in DEMANDS])
    ends: list[list[str]] = field(default_factory=lambda: [[] for _ in DEMANDS])
    reason: str | None = None
    """Of the goodbye that it says; None where it says none."""
    decided_at: int | None = None
    """The number of bytes after which it listened no more."""


# ---- the page's side


def by_the_page(data: bytes, *, is_server: bool) -> Outcome:
    """What the page says about `data`."""
    outcome = Outcome()
    decoder = spec.Decoder(is_server, SPEC_LIMITS, {EXTENSION: frozenset({CODE})})
    incoming: dict[int, spec.Incoming] = {}
    for stream_id, demand in enumerate(DEMANDS):
        decoder.subscribed(stream_id)
        if stream_id != CANCELLED:
            incoming[stream_id] = spec.Incoming(demand, joined_limit=JOINED, parts_limit=PARTS, unfinished_limit=UNFINISHED)
    begun: set[int] = set()
    for byte in data:
        for message in decoder.feed([byte]):
            outcome.heard.append(message)
            _act(message, decoder, incoming, begun, outcome)
        if decoder.refused is not None or decoder.said_goodbye:
            outcome.decided_at = decoder.consumed
            outcome.reason = "" if decoder.said_goodbye else decoder.refused
            _lose(decoder, incoming, outcome, is_server=is_server)
            break
    return outcome


def _act(message: spec.Message, decoder: spec.Decoder, incoming: dict[int, spec.Incoming], begun: set[int], outcome: Outcome) -> None:
    """What a peer does about a message: a table of the page, row by row."""
    match message:
        case ("subscribe", name, stream_id, _) if name != "s":
            decoder.ended(stream_id)  # no such publisher
        case ("request", stream_id, 0):
            decoder.ended(stream_id)  # illegal demand
        case (
            "onSubscribe" | "onNext" | "onNextPacked" | "onNextPart" | "onNextLastPart" | "onComplete" | "onError" as name,
            stream_id,
            *_,
        ):
            stream = incoming.get(stream_id)
            if stream is None:
                return  # cancelled: dropped
            try:
                outcome.elements[stream_id] += stream.accept(message)
            except spec.MustCancel:
                outcome.ends[stream_id].append("broken")
                del incoming[stream_id]
                return
            if name in ("onComplete", "onError"):
                refused = name == "onError" and stream_id not in begun
                outcome.ends[stream_id].append("refused" if refused else name)
                del incoming[stream_id]
            begun.add(stream_id)


def _lose(decoder: spec.Decoder, incoming: dict[int, spec.Incoming], outcome: Outcome, *, is_server: bool) -> None:
    """The end of the connection is the end of what still runs; before the server's hello, another version says that nothing was done."""
    greeted = bool(outcome.heard) and outcome.heard[0][0] != "goodbye"
    told = outcome.heard[0][1] if outcome.heard and not greeted else ""
    discarded = decoder.refused == "version 0" or (not is_server and not greeted and told.startswith("version "))
    for stream_id in incoming:
        outcome.ends[stream_id].append("discarded" if discarded else "lost")


# ---- penstock's side


class _Reader(Subscriber[Any]):
    """Notes what it gets."""

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


class _Tap:
    """A stream that notes what the decoder tells it, and hands it on."""

    def __init__(self, stream: rsio.WireStream, stream_id: int, ours: "Ours") -> None:
        self._stream, self._id, self._ours = stream, stream_id, ours
        self.element_size = stream.element_size

    def receive_element(self, element: bytes, /) -> None:
        self._ours.note("onNext", self._id, element)
        self._stream.receive_element(element)

    def receive_run(self, elements: Sequence[bytes], /) -> None:
        for element in elements:
            self._ours.note("onNext", self._id, element)
        self._stream.receive_run(elements)

    def receive_packed(self, count: int, elements: bytes, /) -> None:
        size = self.element_size
        assert len(elements) == count * size
        self._ours.note("onNextPacked", self._id, tuple(elements[at : at + size] for at in range(0, len(elements), size)))
        self._stream.receive_packed(count, elements)

    def receive_part(self, element: int, data: bytes, last: bool, /) -> None:
        self._ours.note("onNextLastPart" if last else "onNextPart", self._id, element, data)
        self._stream.receive_part(element, data, last)


class _Taps(Mapping[int, rsio.WireStream]):
    """The session's streams, tapped."""

    def __init__(self, ours: "Ours") -> None:
        self._ours = ours

    def __getitem__(self, stream_id: int) -> rsio.WireStream:
        return _Tap(self._ours.session.streams.opened[stream_id], stream_id, self._ours)

    def __iter__(self) -> Iterator[int]:
        return iter(self._ours.session.streams.opened)

    def __len__(self) -> int:
        return len(self._ours.session.streams.opened)


class _Dialect(RsioDialect):
    """The dialect, with an ear at its door."""

    def __init__(self, session: Session, ours: "Ours") -> None:
        super().__init__(session, DialectSettings(extensions=[_Extension()]))
        ours.session = session
        self._ours = ours
        limits = rsio.WireLimits(frame=64, name=16, text=20, reason=20, extensions=4)
        self._decoder = rsio.RsioDecoder(self, _Taps(ours), limits)

    def receive_request(self, subscriber: int, demand: int) -> None:
        self._ours.note("request", subscriber, demand)
        super().receive_request(subscriber, demand)

    def receive_on_subscribe(self, subscriber: int, element_size: int) -> None:
        message = rsio.OnSubscribe(subscriber=subscriber, element_size=element_size)
        self.heard(message, super().receive_on_subscribe, subscriber, element_size)

    def receive_on_complete(self, subscriber: int) -> None:
        self.heard(rsio.OnComplete(subscriber=subscriber), super().receive_on_complete, subscriber)

    def receive_control(self, message: rsio.Message) -> None:
        self.heard(message, super().receive_control, message)

    def heard(self, message: rsio.Message, act: Callable[..., None], *arguments: Any) -> None:
        """Note it before what it leads to, unless that raises."""
        was_deaf, before = self._session.is_closing, len(self._ours.outcome.heard)
        act(*arguments)
        if not was_deaf and not (isinstance(message, rsio.ClientHello | rsio.ServerHello) and message.version):
            self._ours.outcome.heard.insert(before, _as_tuple(message))


def _as_tuple(message: rsio.Message) -> spec.Message:
    match message:
        case rsio.Subscribe(publisher=name, subscriber=stream_id, demand=demand):
            return ("subscribe", name if name.isascii() or _is_text(name) else None, stream_id, demand)
        case rsio.ExtensionMessage(type=code, body=body):
            return ("extension", code, body)
        case _:
            kind = NAMES[type(message).__name__]
            return (kind, *(getattr(message, name) for name in type(message).__dataclass_fields__))


def _is_text(name: str) -> bool:
    return not any("\udc80" <= letter <= "\udcff" for letter in name)


class _Extension:
    """An extension that takes what comes."""

    id = EXTENSION
    name = "any"
    codes = frozenset({CODE})

    def open(self, link: ExtensionLink, now: float, /) -> ActiveExtension:
        return self

    def received(self, type: int, body: bytes, now: float, /) -> None:  # noqa: A002  # the wire's word
        assert type == CODE

    def heard(self, now: float, /) -> None:
        pass

    def tick(self, now: float, /) -> float | None:
        return None


class Ours(Subscription):
    """Penstock's session, as an owner that serves one publisher which never says anything."""

    session: Session

    def __init__(self, *, is_server: bool) -> None:
        self.outcome = Outcome()
        role = Role.SERVER if is_server else Role.CLIENT
        Session(self, lambda session: _Dialect(session, self), role=role, limits=LIMITS, random=lambda: 0.5).start(0.0)
        for demand, elements, ends in zip(DEMANDS, self.outcome.elements, self.outcome.ends, strict=True):
            reader = _Reader(demand, elements, ends)
            self.session.subscribe("theirs", reader)
        reader.subscription.cancel()
        self.session.take()

    def note(self, *message: Any) -> None:
        if not self.session.is_closing:
            self.outcome.heard.append(message)

    def feed(self, data: bytes, pieces: Sequence[int]) -> Outcome:
        """Take `data` in pieces of these sizes, the last of them again and again, and return what came of it."""
        at = number = 0
        while at < len(data) and not self.session.is_closing:
            size = pieces[min(number, len(pieces) - 1)]
            self.session.receive(data[at : at + size], 0.0)
            at, number = min(at + size, len(data)), number + 1
        if self.session.is_closing:
            self.outcome.decided_at = at
            self.outcome.reason = _reason(bytes(self.session.take()))
        return self.outcome

    # --- the owner's duties

    def wake(self) -> None:
        pass

    def opened(self) -> None:
        pass

    def serve(self, stream: SendingStream, /) -> None:
        if stream.target == "s":
            stream.accept()
        else:
            stream.refuse("no such publisher")

    def attach(self, stream: SendingStream, /) -> None:
        stream.on_subscribe(self)

    def publisher_failed(self, stream: SendingStream, error: BaseException, /) -> None:
        raise error

    def warned(self, warning: PenstockError, /) -> None:
        raise warning

    def over(self, error: Exception, /) -> None:
        pass

    def request(self, n: int, /) -> None:
        pass

    def cancel(self, /) -> None:
        pass


def _reason(said: bytes) -> str:
    """The reason of the goodbye, which is the last that was said."""
    heard = MessageList()
    rsio.RsioDecoder(heard, heard.streams).feed(said)
    last = heard.messages[-1]
    assert isinstance(last, rsio.Goodbye)
    return last.reason


def by_penstock(data: bytes, *, is_server: bool, pieces: Sequence[int] = (1 << 20,)) -> Outcome:
    """What penstock makes of `data`, in pieces of these sizes."""
    return Ours(is_server=is_server).feed(data, pieces)


def as_record(message: spec.Message) -> rsio.Message:
    """The same message as a record of penstock's."""
    match message:
        case ("extension", code, body):
            return rsio.ExtensionMessage(type=code, body=body)
        case ("onNextPacked", stream_id, elements):
            return rsio.OnNextPacked(subscriber=stream_id, count=len(elements), elements=b"".join(elements))
        case ("switchEncoding", extension):
            return rsio.SwitchEncoding(extension=extension)
        case (name, *fields):
            kind = cast("Any", getattr(rsio, name[0].upper() + name[1:]))
            return cast("rsio.Message", kind(**dict(zip(kind.__dataclass_fields__, fields, strict=True))))
    raise AssertionError(message)
