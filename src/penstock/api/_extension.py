"""Protocol extensions, and the link through which they act.
Plugins provide extensions, and the session runs them.

An extension is negotiated in the hello: it is active if both hellos list its id. Then it gets a
link to its connection, and returns the object that acts there. It defines its own messages, and may
change the encoding of elements once both sides have declared that.

`Extension` and `ActiveExtension` have the methods that each extension needs. The other protocols of
this module have methods that an extension may offer beside them. These are looked up once, when the
extension opens.
"""

from collections.abc import Awaitable, Callable
from enum import Enum
from typing import Any, Final, Protocol, runtime_checkable

from penstock.api._limits import Limits


class Role(Enum):
    """The side of a connection: the client has opened it, the server has accepted it."""

    CLIENT = "client"
    SERVER = "server"


class Hold(Enum):
    """The answer of `ChecksSubscribes.check_subscribe` for a stream
    that `ExtensionLink.decide` decides on later.
    """

    HOLD = "hold"


HOLD: Final = Hold.HOLD
"""Keeps a stream of the peer undecided."""


class ExtensionLink(Protocol):
    """The calls that an active extension may make on its connection."""

    role: Role
    limits: Limits
    chance: Callable[[], float]
    """A random number from 0 to 1, for jitter."""

    # Any: the class lies in a layer above this one.
    @property
    def peer(self) -> Any:
        """The identity of the peer, a `penstock.spi.PeerIdentity`."""

    @property
    def has_introductions(self) -> bool:
        """True if clients of the protocol introduce themselves (ReactiveSocket's SETUP), and
        False if they do not (RS.io).
        """

    def send(self, type: int, body: bytes) -> None:  # noqa: A002  # the wire's word
        """Queue a message of the extension; `type` must be one of its codes."""

    def annotate(self, type: int, body: bytes) -> None:  # noqa: A002  # the wire's word
        """Queue a message that goes with a stream, at most one for each.
        Call it in a method of `AnnotatesStreams`.
        """

    def break_off(
        self, reason: str, *, at: float | None = None, error: Exception | None = None
    ) -> None:
        """End the connection because the peer broke the extension's rules;
        `reason` is a fixed token.

        With `at` the connection ends at that time if the peer is still held, and at once if it is
        not; the end of `Limits.handshake_timeout` comes first if it is sooner. Of several times the
        first one counts. `error` is what the streams of this side get.
        """

    def glitch(self, weight: int = 1) -> None:
        """Take `weight` from the peer's budget of anomalies (`Limits.glitch_burst`). If it is
        empty, the connection ends.
        """

    def hold_elements(self) -> None:
        """Stop sending elements, and requests to the peer, until `resume_elements`,
        while their encoding is negotiated.
        """

    def resume_elements(self) -> None:
        """Send elements and requests again."""

    def change_elements(
        self,
        *,
        outgoing: Callable[[bytes], bytes] | None = None,
        incoming: Callable[[bytes], bytes] | None = None,
    ) -> None:
        """From now on send `outgoing(element)` and deliver `incoming(element)`. First declare it to
        the peer and wait for its answer.

        The data of requests is changed in the same way.
        """

    def hold_peer(self) -> None:
        """Answer nothing that the peer asks for until `admit`.
        Call it in `Extension.open` or in `MeetsPeers.meet`.

        The connection counts as not open, so `Limits.handshake_timeout` ends it. The subscribes,
        requests and cancels of the peer are kept, up to `Limits.preauth_bytes`, and acted on after
        `admit` in the order in which they came.
        """

    def admit(self, principal: Any = None) -> None:
        """End the hold of this extension.
        `principal` is the name or the object that the peer was recognised as.

        When no extension holds the peer, the connection opens. Publishers and handlers find the
        principal in `PeerIdentity.principal`.
        """

    def recognise(self, principal: Any) -> None:
        """Set `PeerIdentity.principal` of the peer. It has an effect until the connection opens."""

    def await_result(
        self, awaitable: Awaitable[Any], then: Callable[[Any, Exception | None], None]
    ) -> None:
        """Await in a task of the connection, and call `then(result, None)`
        or `then(None, exception)`.

        The end of the connection cancels the task, and `then` is not called.
        """

    def wake_at(self, when: float) -> None:
        """Let `SeesTime.tick` be called at the time `when`, unless it is called before."""

    @property
    def heard_at(self) -> float:
        """When the peer last sent something. The bytes that are being decoded do not count yet."""

    def report(self, error: Exception) -> None:
        """Report a failure of the program's code, which the peer must not see,
        to `on_violation`.
        """

    def content_of(self, stream_id: int) -> tuple[str, str] | None:
        """Return the name of the serializer and of the type
        that the elements of a served stream have.

        The type may be "". None means that it is not known, as for a handler of requests.
        """

    def report_content(self, stream_id: int, serializer: str, schema: str) -> bool:
        """Let the subscriber of a stream of this side know the serializer and the type of its
        elements, before it is accepted.

        Return False for an id that was never opened, and for a stream that was accepted.
        """

    def report_draining(self) -> None:
        """Note that the peer takes no new streams and leaves soon. A client that reconnects
        opens new ones over another connection.
        """

    def decide(self, stream_id: int, refusal: str | None = None) -> None:
        """Serve a stream of the peer that `check_subscribe` has held, or refuse it with
        `refusal`. If it has ended, nothing happens.
        """

    def tell_subscriber(self, stream_id: int, fact: object) -> None:
        """Give `fact` to the subscriber of a stream that this side has opened, if it has
        `on_fact`. If it has ended, nothing happens.
        """

    # Any: a source of `penstock.streams`, which is a layer above this one.
    def source_of(self, stream_id: int) -> Any:
        """Return the source that the service has found for a stream of the peer.
        Call it in `before_accept`.

        None for a stream whose source is looked up with the first demand, for a request for one
        value, and at any other time.
        """


class ActiveExtension(Protocol):
    """The state of an extension on one connection."""

    def received(self, type: int, body: bytes, now: float, /) -> None:  # noqa: A002  # the wire's word
        """Receive one of the extension's messages."""


class SeesTime(Protocol):
    """An active extension may do something at a time."""

    def tick(self, now: float, /) -> float | None:
        """Do what is due at the time `now`, and return the time of the next call, or None.

        Called once when the extension has begun and the connection is open. Then it is called at
        the time that was returned, or at that of `ExtensionLink.wake_at` if it is earlier.
        """


class SeesInput(Protocol):
    """An active extension may see that bytes arrive. It costs a call for each chunk."""

    def heard(self, now: float, /) -> None:
        """Called when bytes of any kind have arrived, before they are decoded."""


class GoesWithStreams(Protocol):
    """An active extension may say that each of its messages belongs to one stream of the side that
    gets it, and that it refuses others.

    Then its messages have no rate of their own: the streams have one.
    """

    goes_with_streams: bool


class ChecksLength(Protocol):
    """An active extension whose messages are short may offer this beside the calls of
    `ActiveExtension`.
    """

    def check_length(self, type: int, length: int, /) -> None:  # noqa: A002  # the wire's word
        """Refuse a message for the length of its body, with `ExtensionLink.break_off`. Called if
        the body has not arrived as a whole.

        Without it a peer can make this side hold `Limits.max_frame` bytes of each message
        that it never finishes.
        """


class ChecksSubscribes(Protocol):
    """An active extension may decide whether a stream of the peer is served."""

    def check_subscribe(self, stream_id: int, target: Any, /) -> str | Hold | None:
        """Return None to let the service decide, a text to refuse the stream with, or `HOLD`.

        `target` is the name of a publisher or a `Request`. After `HOLD` the stream keeps its place
        and its demand until `ExtensionLink.decide`, or until it ends.
        """


class ChangesTargets(Protocol):
    """An active extension may change what a stream of the peer asks for."""

    def change_target(self, stream_id: int, target: Any, /) -> Any:
        """Return the target that is served in place of `target`, or `target` itself. Called once
        for each stream, before all decisions.

        `target` is the name of a publisher or a `Request`.
        """


class AnnotatesStreams(Protocol):
    """An active extension may send its messages about a stream. A message that is sent here goes
    out right before the stream's own.

    Either method may be missing.
    """

    def before_subscribe(self, stream_id: int, target: Any, /) -> Any:
        """Called before the subscribe, or the request, of a stream of this side is sent. Return
        None, or the target to send instead.
        """

    def before_accept(self, stream_id: int, element_size: int, /) -> None:
        """Called before this side accepts a stream of the peer. On RS.io the onSubscribe
        follows, on ReactiveSocket the first response.
        """


class SeesStreams(Protocol):
    """An active extension may see the lives of streams. Each method may be missing.
    Each side numbers its own streams.
    """

    def on_accepted(self, stream_id: int, element_size: int, /) -> None:
        """Called when the peer has accepted a stream of this side."""

    def on_begun(self, stream_id: int, /) -> None:
        """Called when the publisher of a stream of the peer is attached. A handler of requests
        for one value has no publisher.
        """

    def on_ended(self, stream_id: int, is_served: bool, /) -> None:  # noqa: FBT001  # passed by place, as all arguments here
        """Called when a stream has ended in any way; `is_served` tells that the peer has opened it.

        For the streams that end with their connection, `SeesEnd.closed` is called instead.
        """


class AnnouncesDrain(Protocol):
    """An active extension may tell the peer that this side takes no new streams and leaves soon."""

    def on_draining(self, seconds: float, /) -> None:
        """Called when this side begins to drain, and again with fewer seconds if it has to leave
        earlier. It leaves in `seconds`.
        """


class SeesEnd(Protocol):
    """An active extension may see the end of its connection."""

    def closed(self) -> None:
        """Called once, when the connection is over. Nothing can be sent any more."""


def check_length_of(active: ActiveExtension) -> Callable[[int, int], None] | None:
    """Return the `check_length` of `active`, or None without that method."""
    method: Callable[[int, int], None] | None = getattr(active, "check_length", None)
    return method


@runtime_checkable
class Extension(Protocol):
    """An extension of RS.io and of ReactiveSocket, as a plugin registers it."""

    id: int
    """Its number in the hello. Numbers below 128 are reserved for penstock;
    take one from 128 on.
    """

    name: str
    codes: frozenset[int]
    """The type codes of its messages: 0x60 to 0x7e are free, 0x40 to 0x5f are reserved for
    penstock. Bodies are length-prefixed.
    """

    def open(self, link: ExtensionLink, now: float, /) -> ActiveExtension:
        """Start the extension on a connection on which both sides have it."""


class MeetsPeers(Protocol):
    """An extension may examine each peer, also one that does not have the extension."""

    def meet(
        self, link: ExtensionLink, introduction: bytes | None, now: float, /
    ) -> ActiveExtension | None:
        """Start on a connection whose peer does not have the extension, before anything is
        answered; or return None and stay away.

        `introduction` is the data of a ReactiveSocket client's SETUP, and None on RS.io.
        The returned extension gets no messages.
        On ReactiveSocket this is called at a server for each client, in place of `open`.
        """


class Introduces(Protocol):
    """An extension may introduce its client. Then it is not announced on ReactiveSocket, whose
    clients introduce themselves.
    """

    def introduction(self) -> bytes:
        """Return the data of the SETUP, which is sent if the program gives none."""


class SpeaksFirst(Protocol):
    """An extension may speak to the server before anything else does."""

    no_false_start: bool
    """On RS.io a client sends nothing after its hello until the server's has come, and no extension
    of this side holds the peer.
    """
