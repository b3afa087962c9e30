"""The extensions of one connection, in any dialect:
opened when both sides have them, fed, and kept from doing harm.

An extension that raises ends its connection, and nothing else; the peer is told no more than that.
An extension sends no messages but those with its own codes.
"""

from collections.abc import Awaitable, Callable, Collection, Sequence
from functools import partial
from typing import Any, Final, TypeAlias, TypeVar

from penstock.api import ActiveExtension, Extension, PluginError, ProtocolError, check_length_of
from penstock.session._dialect_host import DialectHost
from penstock.session._extension_handle import KEEPALIVE, ExtensionHandle
from penstock.session._stream_observers import StreamObservers
from penstock.session._withheld_output import WithheldOutput

T = TypeVar("T")

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
