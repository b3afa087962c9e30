"""The extensions of one connection, in any dialect: opened when both sides have them, fed, told of
streams, and kept from doing harm.

Rules of this file:

* An extension that raises ends its connection, and nothing else; the peer is told no more than
  that.
* An extension sends no messages but those with its own codes.
"""

from collections.abc import Awaitable, Callable, Collection, Sequence
from functools import partial
from math import inf
from typing import Any, Final, TypeAlias, TypeVar, cast

from penstock.api import (
    HOLD,
    ActiveExtension,
    ConnectionLost,
    Extension,
    Limits,
    PluginError,
    ProtocolError,
    UsageError,
    check_length_of,
)
from penstock.session._channel import Channel
from penstock.session._dialect import Dialect, DialectHost, Fault
from penstock.session._reasons import DRAINING, explain_own
from penstock.session._receiving_stream import ReceivingStream, announce_content, tell_subscriber
from penstock.session._sending_stream import SendingStream
from penstock.session._states import SendingState

T = TypeVar("T")

KEEPALIVE: Final = 1
"""The id of the extension that notices a dead peer, in every dialect.
Ids below 128 are assigned by the project.
"""

RESUME_ID: Final = 5
"""The id of the extension that goes on after a lost connection."""

DRAIN: Final = 6
"""The id of the extension that tells a peer that this side takes no new streams."""

FALSE_START: Final = -1
"""Holds the requests of a client back until the server's hello has come.
The other holders are extensions, by their ids.
"""

_NONE: Final[frozenset[int]] = frozenset()
"""One object for all connections: each call of `frozenset()` makes another, of 216 bytes."""

EncodeMessage: TypeAlias = Callable[[Extension, int, bytes], bytes]
"""Encodes an extension's message from its type code and its body, as the dialect writes it."""


class ExtensionHost:
    """Runs the extensions that both sides have."""

    def __init__(
        self,
        session: DialectHost,
        extensions: Sequence[Extension],
        encode: EncodeMessage,
        on_admitted: Callable[[], None] | None = None,
        *,
        has_introductions: bool = False,
    ) -> None:
        """`on_admitted` is called when the last extension that held the peer has let it in."""
        self._session = session
        self._extensions = extensions
        self._on_admitted = on_admitted
        # Frozen, and shared: an idle connection needs no set.
        self._holders: frozenset[int] = _NONE  # ids of the extensions that hold the peer
        self._withholders: frozenset[int] = _NONE  # what holds the requests of this side back
        self._withheld: WithheldOutput | None = None
        self.encode: EncodeMessage = encode
        self.has_introductions: bool = has_introductions
        """Clients of the protocol introduce themselves."""
        self.active: dict[int, ActiveExtension] = {}
        """The extensions that run, by id."""
        # A separate tuple: it is looked at for each chunk, and most extensions have no such method.
        self.hearing: tuple[Callable[[float], None], ...] = ()
        """The methods `heard` of those that have one."""

    @property
    def known(self) -> dict[int, Extension]:
        """The extensions of this side, by id. Made at each look: only the handshake needs it,
        and all connections have the same.
        """
        return {extension.id: extension for extension in self._extensions}

    @property
    def announced(self) -> list[int]:
        """The ids that are announced where clients introduce themselves: without the extensions
        that do this with the introduction.
        """
        return [
            extension.id
            for extension in self._extensions
            if getattr(extension, "introduction", None) is None
        ]

    def introduction(self) -> bytes:
        """Return the introduction of a client by the first extension that has one."""
        for extension in self._extensions:
            introduction: Callable[[], bytes] | None = getattr(extension, "introduction", None)
            data = None if introduction is None else self.call(introduction)
            if data:
                return data
        return b""

    # --- starting

    def open(self, extension_id: int) -> ActiveExtension | None:
        """Begin with an extension that the peer also has. None if this side does not have it, it
        runs already, or it raised.
        """
        extension = self.known.get(extension_id)
        if extension is None or extension_id in self.active:
            return None
        return self._start(extension, extension.open, self._session.channel.now)

    def meet(self, theirs: Collection[int], introduction: bytes | None = None) -> bool:
        """Let each extension that the peer does not have examine the peer.
        `theirs` are the extensions that it has.

        Return False if one of them has ended the connection.
        """
        for extension in self._extensions:
            examine: Callable[..., ActiveExtension | None] | None = getattr(extension, "meet", None)
            # The extension before may have ended the connection.
            if (
                examine is not None
                and extension.id not in theirs
                and not self._session.channel.state.is_closing
            ):
                self._start(extension, examine, introduction, self._session.channel.now)
        return not self._session.channel.state.is_closing

    def _start(
        self, extension: Extension, function: Callable[..., ActiveExtension | None], *arguments: Any
    ) -> ActiveExtension | None:
        # Each connection gets a separate link: an extension object serves many connections.
        handle = ExtensionHandle(self, self._session, extension)
        active = self.call(function, handle, *arguments)
        # An extension whose open() raised gets no messages.
        if active is not None:
            self.active[extension.id] = active
            heard: Callable[[float], None] | None = getattr(active, "heard", None)
            if heard is not None:
                self.hearing += (heard,)
            if hasattr(active, "tick"):
                self._session.channel.deadlines.add(handle)
            if extension.id == KEEPALIVE:
                self._session.streams.use.keepalive = active
            self._observe(active)
        return active

    def _observe(self, active: ActiveExtension) -> None:
        streams = self._session.streams
        observers = streams.observers or StreamObservers(self._session)
        if observers.add(active):
            streams.observers = observers
        announce: Callable[[float], None] | None = getattr(active, "on_draining", None)
        if announce is not None:
            # A peer whose hello comes during the drain is told at once.
            streams.drain.add(partial(self.call, announce))

    def forget(self, extension_id: int) -> None:
        """Call an extension no more: its dialect does."""
        del self.active[extension_id]

    def settle(self) -> None:
        """Forget the extensions that have not begun:
        the peer cannot begin with another one any more.
        """
        self._extensions = ()

    def end(self) -> None:
        """Forget the extensions: the connection is over."""
        self.active, self.hearing = {}, ()
        self._on_admitted = self._withheld = None

    # --- while it runs

    def heard(self) -> None:
        """Tell the extensions that bytes have arrived."""
        for heard in self.hearing:
            self.call(heard, self._session.channel.now)

    def received(self, active: ActiveExtension, code: int, body: bytes) -> None:
        """Pass a message to its extension."""
        # Acknowledgements follow from bytes of this side. Counted, they would bound its speed, and
        # keep an idle connection open.
        if getattr(active, "is_uncounted", False):
            self.call(active.received, code, body, self._session.channel.now)
            return
        # A ping costs the peer a few bytes; answering it costs more.
        # So extension messages have a rate.
        if (
            getattr(active, "goes_with_streams", False)
            or self._session.channel.spend_control_token()
        ):
            use = self._session.streams.use
            if active is not use.keepalive and not use.is_noted:
                use.note(self._session.channel.now)
            self.call(active.received, code, body, self._session.channel.now)

    def check_length(self, active: ActiveExtension, code: int, length: int) -> None:
        """Let an extension refuse a message whose body has not arrived as a whole."""
        check = check_length_of(active)
        if check is not None and not self._session.channel.state.is_closing:
            self.call(check, code, length)

    def tick(self, extension_id: int, now: float) -> float | None:
        """Let an extension do what is due. Return when to call again, or None."""
        active: Any = self.active.get(extension_id)
        try:
            due: float | None = None if active is None else self.call(active.tick, now)
        except ProtocolError as error:
            self._session.close_protocol_error(error)
            return None
        return due

    def call(self, function: Callable[..., T], *arguments: Any) -> T | None:
        """Call a function of an extension.
        If it raises, the connection ends, and None is returned.
        """
        try:
            return function(*arguments)
        except ProtocolError:
            raise  # the extension has found a fault of the peer
        except Exception as error:  # boundary: an extension, perhaps of a plugin
            self._end(error)
            return None

    def _end(self, error: Exception) -> None:
        text = f"an extension raised, which ends its connection: {error!r}"
        if not self._session.channel.state.is_closing:
            # A server may have no stream that would raise it. A separate exception: the session
            # keeps its own, and must not keep frames.
            warning = PluginError(text)
            warning.__cause__ = error
            self._session.streams.delegate.on_warning(warning)
        self._session.close_internal_error(PluginError(text))

    def await_result(
        self, awaitable: Awaitable[Any], then: Callable[[Any, Exception | None], None]
    ) -> None:
        """Let the connection await, and call `then` with the outcome."""

        def report(result: Any, error: Exception | None) -> None:
            # Outside of the decoder, which would turn a ProtocolError into the end of the
            # connection.
            try:
                self.call(then, result, error)
            except ProtocolError as broken:
                self._session.close_protocol_error(broken)

        self._session.streams.delegate.await_result(awaitable, report)

    # --- holding the peer

    @property
    def is_holding(self) -> bool:
        """An extension holds the peer."""
        return bool(self._holders)

    def hold_peer(self, extension_id: int) -> None:
        """Note that an extension holds the peer."""
        self._holders |= {extension_id}

    def admit(self, extension_id: int) -> None:
        """Note that an extension lets the peer in."""
        if extension_id not in self._holders:
            return
        self._holders = (self._holders - {extension_id}) or _NONE
        if (
            not self._holders
            and self._on_admitted is not None
            and not self._session.channel.state.is_closing
        ):
            self._on_admitted()

    def withhold_false_start(self) -> None:
        """Hold the requests of a client back if an extension wants to speak first."""
        if any(getattr(extension, "no_false_start", False) for extension in self._extensions):
            self.withhold(FALSE_START)

    @property
    def is_silent(self) -> bool:
        """True while a client has sent none of its requests: the peer can have acted on none."""
        return FALSE_START in self._withholders

    def withhold(self, holder: int) -> None:
        """Hold the requests of this side back until every holder has released them."""
        self._withholders |= {holder}
        if self._withheld is None:
            self._withheld = WithheldOutput(self._session.channel)

    def release(self, holder: int) -> None:
        """Send the requests that were held back, unless there is another holder."""
        self._withholders = (self._withholders - {holder}) or _NONE
        if self._withheld is not None and not self._withholders:
            withheld, self._withheld = self._withheld, None
            withheld.put_back()


class ExtensionHandle:
    """The calls of one active extension to its connection: an `ExtensionLink`."""

    __slots__ = ("_extension", "_host", "_session", "chance", "due", "limits", "role")

    def __init__(self, host: ExtensionHost, session: DialectHost, extension: Extension) -> None:
        self._host = host
        self._session = session
        self._extension = extension
        self.due: float = inf
        """When its extension is to be asked: see `Watcher`."""
        self.role = session.channel.role
        self.limits: Limits = session.channel.limits
        self.chance: Callable[[], float] = session.channel.random

    @property
    def peer(self) -> Any:
        """The identity of the peer."""
        return self._session.streams.delegate.identify()

    @property
    def has_introductions(self) -> bool:
        """Clients of the protocol introduce themselves."""
        return self._host.has_introductions

    def send(self, type: int, body: bytes) -> None:  # noqa: A002  # the wire's word
        """Queue a message of the extension."""
        # Two extensions never share a code, so a message of another code would be read by the wrong
        # extension.
        if type not in self._extension.codes:
            raise UsageError(
                f"extension {self._extension.name!r} sends type {type:#04x}, which is none of its "
                "codes"
            )
        # A keepalive or an acknowledgement is not a use: it must not keep an idle connection open.
        if self._extension.id not in (KEEPALIVE, RESUME_ID):
            self._session.streams.use.note(self._session.channel.now)
        # answer() and not send(): most of these messages answer the peer, as a pong does,
        # and answers are bounded.
        self._session.channel.answer(self._host.encode(self._extension, type, body))

    def annotate(self, type: int, body: bytes) -> None:  # noqa: A002  # the wire's word
        """Queue a message that goes with a stream of the peer."""
        # send() and not answer(): there is one for each stream, so the bound on streams is theirs,
        # too. A peer that opened 1,024 streams at once would otherwise be cut as one that does not
        # read its answers.
        self._session.channel.send(self._host.encode(self._extension, type, body))

    def break_off(
        self, reason: str, *, at: float | None = None, error: Exception | None = None
    ) -> None:
        """End the connection, now or at a time."""
        # The peer gets the token. The error on this side explains it.
        text = f"the extension {self._extension.name!r} ended the connection: {explain_own(reason)}"
        self._session.close(reason, error or ConnectionLost(text), at=at)

    def glitch(self, weight: int = 1) -> None:
        """Spend oddity tokens of the peer."""
        self._session.channel.count_oddity(weight)

    def hold_elements(self) -> None:
        """Stop sending elements and requests."""
        self._session.channel.outbox.hold()
        self._host.withhold(self._extension.id)

    def resume_elements(self) -> None:
        """Send elements and requests again."""
        self._host.release(self._extension.id)
        self._session.channel.outbox.resume()

    def change_elements(
        self,
        *,
        outgoing: Callable[[bytes], bytes] | None = None,
        incoming: Callable[[bytes], bytes] | None = None,
    ) -> None:
        """Change elements from here on:
        `outgoing` before they are sent, `incoming` before they are delivered.
        """
        if outgoing is not None:
            self._session.streams.change_outgoing(self._guarded(outgoing))
        if incoming is not None:
            self._session.channel.incoming = self._guarded(incoming)

    def hold_peer(self) -> None:
        """Answer nothing until `admit`."""
        self._host.hold_peer(self._extension.id)

    def admit(self, principal: Any = None) -> None:
        """End the hold of this extension."""
        if principal is not None:
            self.recognise(principal)
        self._host.admit(self._extension.id)

    def recognise(self, principal: Any) -> None:
        """Set the principal of the peer."""
        self._session.streams.delegate.recognise(principal)

    def await_result(
        self, awaitable: Awaitable[Any], then: Callable[[Any, Exception | None], None]
    ) -> None:
        """Await in a task of the connection."""
        self._host.await_result(awaitable, then)

    def wake_at(self, when: float) -> None:
        """Let the extension's `tick` be called at that time."""
        self._session.channel.deadlines.hasten(self, when)

    @property
    def heard_at(self) -> float:
        """When the peer last sent something."""
        return self._session.channel.last_input_at

    def look(self, now: float, /) -> float | None:
        """Let the extension do what is due."""
        return self._host.tick(self._extension.id, now)

    def report(self, error: Exception) -> None:
        """Report a failure of the program's code."""
        self._session.streams.delegate.on_warning(error)

    def content_of(self, stream_id: int) -> tuple[str, str] | None:
        """Return the names of the serializer and of the type of a stream
        that the peer has opened.
        """
        streams = self._session.streams
        # The stream may have ended before the extension asks.
        stream = streams.serving.get(stream_id)
        return None if stream is None else streams.content_of(stream.target)

    def report_content(self, stream_id: int, serializer: str, schema: str) -> bool:
        """Note what the peer has announced for a stream of this side."""
        stream = self._session.streams.opened.get(stream_id)
        if isinstance(stream, ReceivingStream):
            return announce_content(stream, serializer, schema)
        # The stream was cancelled, and the message has crossed the cancel. A flood of such messages
        # is bounded by `Limits.control_rate`.
        return stream is not None and (self._session.channel.spend_control_token() or True)

    def report_draining(self) -> None:
        """Note that the peer takes no new streams."""
        self._session.streams.drain.note_peer()

    def decide(self, stream_id: int, refusal: str | None = None) -> None:
        """Serve or refuse a stream that was held."""
        observers = self._session.streams.observers
        if observers is not None:
            observers.decide(stream_id, refusal)

    def tell_subscriber(self, stream_id: int, fact: object) -> None:
        """Give a fact to the subscriber of a stream of this side."""
        stream = self._session.streams.opened.get(stream_id)
        # The stream may have been cancelled while the message of the extension was under way.
        if isinstance(stream, ReceivingStream):
            tell_subscriber(stream, fact)

    def source_of(self, stream_id: int) -> Any:
        """Return the source of a stream of the peer that is being accepted."""
        stream = self._session.streams.serving.get(stream_id)
        return None if stream is None else self._session.streams.delegate.source_of(stream)

    def _guarded(self, change: Callable[[bytes], bytes]) -> Callable[[bytes], bytes]:
        """Return `change` so that it ends the connection if it raises. The result after that is
        delivered to no subscriber.
        """

        def guarded(element: bytes) -> bytes:
            try:
                # Not raised: elements that are sent are changed inside of a call of their
                # publisher, which would get the error.
                return change(element)
            except ProtocolError as error:
                self._session.close_protocol_error(error)
            except Exception as error:  # boundary: an extension, perhaps of a plugin
                text = (
                    f"the extension {self._extension.name!r} raised on an element, which ends its "
                    f"connection: {error!r}"
                )
                self._session.close_internal_error(PluginError(text))
            return b""

        return guarded


METHODS: Final = (
    "change_target",
    "check_subscribe",
    "before_subscribe",
    "before_accept",
    "on_accepted",
    "on_begun",
    "on_ended",
    "closed",
)
"""The optional methods of an active extension that `StreamObservers` calls."""


class StreamObservers:
    """The extensions that have at least one of `METHODS`, and the calls of these methods when
    streams open, begin and end. Without such an extension a connection has no object of this class.
    """

    __slots__ = ("_methods", "_session")

    def __init__(self, session: DialectHost) -> None:
        self._session = session
        # Tuples: a list for each name took 0.7 KiB of a connection.
        self._methods: dict[str, tuple[Callable[..., Any], ...]] = dict.fromkeys(METHODS, ())

    def add(self, active: ActiveExtension) -> bool:
        """Look up the methods of an extension. Return whether it has any of them."""
        # Looked up once for the connection, and not by name for each stream.
        found = {
            name: method for name in METHODS if (method := getattr(active, name, None)) is not None
        }
        for name, method in found.items():
            self._methods[name] += (method,)
        return bool(found)

    def change_target(self, stream_id: int, target: Any) -> Any:
        """Pass `target` through each extension, and return the last result."""
        for method in self._methods["change_target"]:
            changed = self._call(method, stream_id, target)
            # HOLD: the extension has raised, and the connection has ended.
            target = target if changed is HOLD else changed
        return target

    def permits(self, stream: SendingStream) -> bool:
        """Return whether the service may decide on a stream now. If not, an extension holds it,
        has refused it, or has raised.
        """
        for method in self._methods["check_subscribe"]:
            answer = self._call(method, stream.id, stream.target)
            # The extension has raised, or ended the connection:
            # no stream is left to decide on.
            if self._session.channel.state.is_closing:
                return False
            # The first extension that does not agree decides:
            # a later extension must not serve what this one holds.
            if answer is HOLD:
                return False
            if answer is not None:
                stream.refuse(str(answer))
                return False
        return True

    def decide(self, stream_id: int, refusal: str | None) -> None:
        """Serve a stream that an extension has held, or refuse it."""
        streams = self._session.streams
        stream = streams.serving.get(stream_id)
        # The stream may have ended, or was decided on before.
        if stream is None or stream.state is not SendingState.REQUESTED:
            return
        # The drain may have begun while the extension held the stream.
        if refusal is not None:
            stream.refuse(refusal)
        elif streams.drain.until is not None:
            stream.refuse(DRAINING, fault=Fault.UNTOUCHED)
        else:
            streams.delegate.serve(stream)

    def before_subscribe(self, stream_id: int, target: Any) -> Any:
        """Call the extensions before a stream of this side is opened,
        and return the target to send.
        """
        for method in self._methods["before_subscribe"]:
            changed = self._call(method, stream_id, target)
            # None does not change the target; HOLD says that the extension has raised.
            target = target if changed is None or changed is HOLD else changed
        return target

    def before_accept(self, stream_id: int, element_size: int) -> None:
        """Call the extensions before a stream of the peer is accepted."""
        self._call_all("before_accept", stream_id, element_size)

    def on_accepted(self, stream_id: int, element_size: int) -> None:
        """Call the extensions because the peer has accepted a stream."""
        self._call_all("on_accepted", stream_id, element_size)

    def on_begun(self, stream_id: int) -> None:
        """Call the extensions because the publisher of a stream is attached."""
        self._call_all("on_begun", stream_id)

    def on_ended(self, stream_id: int, *, is_served: bool) -> None:
        """Call the extensions because a stream has ended."""
        self._call_all("on_ended", stream_id, is_served)

    def closed(self) -> None:
        """Call the extensions because the connection is over."""
        for method in self._methods["closed"]:
            try:
                method()
            except Exception as error:
                # boundary: an extension, perhaps of a plugin. The connection has ended already.
                warning = PluginError(f"an extension raised in closed(): {error!r}")
                # For the log: the text alone does not say where the extension has raised.
                warning.__cause__ = error
                self._session.streams.delegate.on_warning(warning)

    def _call_all(self, name: str, *arguments: Any) -> None:
        for method in self._methods[name]:
            self._call(method, *arguments)

    def _call(self, method: Callable[..., Any], *arguments: Any) -> Any:
        # The exception stays here: most of these calls are made by the program or by a publisher,
        # which must not get it.
        try:
            return method(*arguments)
        except ProtocolError as error:
            self._session.close_protocol_error(error)
        except Exception as error:  # boundary: an extension, perhaps of a plugin
            self._session.close_internal_error(
                PluginError(f"an extension raised, which ends its connection: {error!r}")
            )
        return HOLD


class WithheldOutput:
    """A dialect whose subscribes, requests and cancels are sent at `put_back`: an extension still
    has to speak, or negotiates how the data of requests is encoded. All else passes on to the
    dialect.

    It stands in the place of the dialect, so a connection that holds nothing back pays nothing. The
    calls are kept, and not their bytes: the data of a request is encoded when it is sent, perhaps
    changed by an extension.
    """

    __slots__ = ("_calls", "_channel", "_dialect")

    def __init__(self, channel: Channel) -> None:
        """Take the place of the dialect of `channel`."""
        self._channel = channel
        self._dialect = channel.dialect
        # Bounded by the program alone: these are its own requests,
        # which it could as well have sent.
        self._calls: list[Callable[[], bytes]] = []
        channel.dialect = cast("Dialect", self)

    # Not `release`, which is a method of the dialect.
    def put_back(self) -> None:
        """Put the dialect back, and send what was held."""
        self._channel.dialect = self._dialect
        calls, self._calls = self._calls, []
        for call in calls:
            self._channel.send(call())

    # --- the calls of the session that are held. An empty message is not sent

    def subscribe(self, stream_id: int, target: Any, demand: int) -> bytes:
        """Hold the opening of a stream."""
        return self._hold(partial(self._dialect.subscribe, stream_id, target, demand))

    def fire(self, stream_id: int, target: Any) -> bytes:
        """Hold a request that has no answer."""
        return self._hold(partial(self._dialect.fire, stream_id, target))

    def request(self, stream_id: int, n: int) -> bytes:
        """Hold more demand."""
        return self._hold(partial(self._dialect.request, stream_id, n))

    def cancel(self, stream_id: int) -> bytes:
        """Hold a cancel."""
        return self._hold(partial(self._dialect.cancel, stream_id))

    def _hold(self, call: Callable[[], bytes]) -> bytes:
        self._calls.append(call)
        return b""

    def __getattr__(self, name: str) -> Any:
        # Called for each name that this class does not have: the rest of the dialect.
        return getattr(self._dialect, name)
