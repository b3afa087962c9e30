"""Events of connections and streams, reported to the observers among the plugins:
metrics, traces, logs.

Rules of this file:

* An observer is a plain function and is called inline: it must be quick, must not wait, and gets a
  record that it cannot change.
* An observer that raises affects neither the connection nor the other observers. Its first failure
  is logged as an error, later ones as debug messages, and fewer and fewer of them: a broken
  observer of a busy server would otherwise fill the log.
* Without observers an event costs one look at an empty tuple. Check `Events.wants_streams` before
  making a record for each stream.
"""

import enum
import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import attrs

from penstock.api import PluginError, SignalKind, SignalTap, printable, traceback_text
from penstock.spi._peer_identity import PeerIdentity

_log: Final = logging.getLogger("penstock.spi")

ALWAYS_LOGGED: Final = 10
"""Failures of one observer that are logged each. After them the 100th, the 1,000th and so on:
each stream of a peer may cause one.
"""

NO_PEER: Final = PeerIdentity(address="")
"""Stands for the peer in an event that a test makes without one."""


@attrs.frozen(kw_only=True)
class ConnectionOpened:
    """A connection has finished its handshakes."""

    connection: int
    """The connection's number in this process, counted from 1."""

    address: str
    """The URL that was connected to, or listened at; without a publisher's name."""

    dialect: str
    """The protocol: ``rsio``."""

    accepted: bool
    """True if the peer connected to this process."""

    peer: PeerIdentity
    """The peer's identity."""


@attrs.frozen(kw_only=True)
class ConnectionClosed:
    """A connection has ended, and so have all its tasks."""

    connection: int
    """The same number as in `ConnectionOpened`."""

    reason: str
    """The reason of the goodbye, or another cause of the end; it begins with a fixed token."""

    error: BaseException | None = None
    """The exception that ended it; None after a goodbye."""


@attrs.frozen(kw_only=True)
class ConnectionRefused:
    """A server has ended a connection before both sides had said hello.
    A client that left by itself was not refused.
    """

    address: str
    """The URL that is listened at."""

    peer: PeerIdentity
    """The peer's identity at the time of its connect."""

    reason: str
    """A token of a fixed list: ``places:address``, ``protocol:http``.
    It never contains words of the peer.
    """


class Outcome(enum.Enum):
    """How a stream ended."""

    COMPLETED = "completed"
    """The publisher completed."""

    FAILED = "failed"
    """The publisher failed, or refused the subscription."""

    CANCELLED = "cancelled"
    """The subscriber cancelled."""

    LOST = "lost"
    """The connection ended before the stream did."""


@attrs.frozen(kw_only=True)
class StreamOpened:
    """A subscription over a connection has begun."""

    connection: int
    """The number of its connection."""

    stream: int
    """Its id on that connection. The two directions of a connection have separate ids."""

    publisher: str
    """The publisher's name."""

    outbound: bool
    """True if this side publishes and the peer subscribes."""

    pattern: str = ""
    """The name or pattern under which the service offers the publisher: ``quotes/{symbol}``. A peer
    can choose `publisher`, and never this.

    Empty for a stream of the peer, and for a request whose data is not a name.
    """


@attrs.frozen(kw_only=True)
class StreamEnded:
    """A subscription over a connection has ended. Reported once for each `StreamOpened`."""

    connection: int
    """The number of its connection."""

    stream: int
    """Its id."""

    outbound: bool
    """The same as `StreamOpened.outbound`. Connection, stream and direction together identify a
    subscription.
    """

    outcome: Outcome
    """How it ended."""

    elements: int
    """The number of elements sent or received."""

    error: BaseException | None = None
    """The failure, if there was one."""

    publisher: str = ""
    """The publisher's name, as in `StreamOpened`."""

    peer: PeerIdentity = NO_PEER
    """The peer's identity, as in `ConnectionOpened`."""

    duration: float = 0.0
    """Seconds from its beginning to its end."""

    bytes: int = 0
    """The bytes of the elements, as they crossed the wire, without headers."""

    pattern: str = ""
    """As in `StreamOpened`."""


class ReconnectStage(enum.Enum):
    """The event or the next step of a client with a policy to reconnect."""

    LOST = "lost"
    """A connection that was open has ended."""

    RETRYING = "retrying"
    """After `ReconnectEvent.wait` seconds it will be tried to connect again."""

    BACK = "back"
    """A connection is open again."""

    GIVEN_UP = "given up"
    """The last attempt that the policy permits has failed."""


@attrs.frozen(kw_only=True)
class ReconnectEvent:
    """A step of a client on its way from a lost connection to the next one."""

    address: str
    """The URL; without a publisher's name."""

    stage: ReconnectStage
    """The step."""

    attempt: int
    """The number of the attempt, counted from 1 after the last connection that stayed;
    0 if such a connection is lost.
    """

    wait: float = 0.0
    """Seconds until the attempt, when RETRYING."""

    error: BaseException | None = None
    """Why the connection was lost, or could not be made."""


@attrs.frozen(kw_only=True)
class ConnectionSuspended:
    """A connection with ``resume=True`` has lost its transport. Its streams are kept until the
    client is back, or its time is over.
    """

    connection: int
    """The same number as in `ConnectionOpened`."""

    address: str
    """As in `ConnectionOpened`."""

    accepted: bool
    """True if the peer connected to this process, and so must come back;
    False if this process tries to connect again.
    """

    peer: PeerIdentity
    """The peer's identity."""

    error: BaseException
    """How the transport ended."""


@attrs.frozen(kw_only=True)
class ConnectionResumed:
    """A suspended connection goes on over another transport connection. If it does not,
    `ConnectionClosed` is reported instead.
    """

    connection: int
    """The same number as in `ConnectionOpened`."""

    address: str
    """As in `ConnectionOpened`."""

    accepted: bool
    """As in `ConnectionSuspended`."""

    peer: PeerIdentity
    """The peer's identity. Its address may be another one than before."""

    seconds: float
    """How long the connection was suspended."""


Event = (
    ConnectionSuspended
    | ConnectionResumed
    | ConnectionOpened
    | ConnectionClosed
    | ConnectionRefused
    | StreamOpened
    | StreamEnded
    | ReconnectEvent
)
"""The argument of an observer."""


@attrs.define
class _Observer:
    """One observing function of one plugin."""

    plugin: str
    function: Callable[[Event], object]
    failures: int = 0

    def notify(self, event: Event) -> object:
        try:
            return self.function(event)
        # The boundary to a plugin's code:
        # an exception of an observer must not reach the connection that it observes.
        except Exception as error:
            self._count_failure(event, error)
            return None

    def _count_failure(self, event: Event, error: Exception) -> None:
        self.failures += 1
        level = logging.ERROR if self.failures == 1 else logging.DEBUG
        if _log.isEnabledFor(level) and (
            self.failures <= ALWAYS_LOGGED or _is_power_of_ten(self.failures)
        ):
            self._log_failure(level, type(event).__name__, error)

    def _log_failure(self, level: int, kind: str, error: Exception) -> None:
        times = f" ({self.failures:,} times by now)" if self.failures > ALWAYS_LOGGED else ""
        text = (
            f"plugin {self.plugin!r} raised in its observer of {kind}{times}; later failures are "
            "logged as debug"
        )
        raised = (type(error), error, error.__traceback__)
        record = _log.makeRecord(
            _log.name, level, __file__, 0, "%s", (printable(text, len(text)),), raised
        )
        # In place of the text that a formatter would make: an exception of an observer often
        # repeats a name that a peer chose.
        record.exc_text = traceback_text(error)
        _log.handle(record)

    def ask_for_tap(self, event: Event) -> SignalTap | None:
        tap = self.notify(event)
        if tap is None or isinstance(tap, SignalTap):
            return tap
        # Said as a failure of the plugin: called as a tap, this object would fail in each signal.
        wrong = PluginError(
            f"returned {type(tap).__name__} from penstock_signals; return a SignalTap "
            "(each_signal, record), or None"
        )
        self._count_failure(event, wrong)
        return None


class _Taps:
    """Several taps of one stream."""

    def __init__(self, taps: Sequence[SignalTap]) -> None:
        self._taps = taps
        self.each_signal: bool = any(tap.each_signal for tap in taps)

    def record(
        self, kind: SignalKind, n: int, size: int, first: int, last: int, longest: int, /
    ) -> None:
        for tap in self._taps:
            tap.record(kind, n, size, first, last, longest)


def _is_power_of_ten(number: int) -> bool:
    return str(number).strip("0") == "1"


@attrs.frozen
class Events:
    """Reports events to observers. `build_registry` makes it, the runtime calls it. None of its
    methods raises or checkpoints.
    """

    _connections_opened: tuple[_Observer, ...] = attrs.field(default=(), repr=False)
    _connections_closed: tuple[_Observer, ...] = attrs.field(default=(), repr=False)
    _streams_opened: tuple[_Observer, ...] = attrs.field(default=(), repr=False)
    _streams_ended: tuple[_Observer, ...] = attrs.field(default=(), repr=False)
    _connections_refused: tuple[_Observer, ...] = attrs.field(default=(), repr=False)
    _reconnects: tuple[_Observer, ...] = attrs.field(default=(), repr=False)
    _signals: tuple[_Observer, ...] = attrs.field(default=(), repr=False)
    _suspended: tuple[_Observer, ...] = attrs.field(default=(), repr=False)
    _resumed: tuple[_Observer, ...] = attrs.field(default=(), repr=False)

    @classmethod
    def of(cls, observers: Iterable[tuple[str, str, Callable[[Event], object]]]) -> "Events":
        """Make one of triples: the plugin's name, the hook's name, the function. For
        `build_registry` and for tests.
        """
        by_hook: dict[str, list[_Observer]] = {hook: [] for hook in OBSERVER_HOOKS}
        for plugin, hook, function in observers:
            by_hook[hook].append(_Observer(plugin, function))
        return cls(*(tuple(by_hook[hook]) for hook in OBSERVER_HOOKS))

    def joined_by(
        self, observers: Iterable[tuple[str, str, Callable[[Event], object]]]
    ) -> "Events":
        """Return one that reports to these as well."""
        added = Events.of(observers)
        names = [field.name for field in attrs.fields(Events)]
        return Events(*(getattr(self, name) + getattr(added, name) for name in names))

    @property
    def wants_streams(self) -> bool:
        """Whether a plugin observes streams.
        Check it before making a record for each of a million streams.
        """
        return bool(self._streams_opened or self._streams_ended)

    @property
    def wants_signals(self) -> bool:
        """Whether a plugin may want to see the signals of streams."""
        return bool(self._signals)

    def tap(self, event: StreamOpened) -> SignalTap | None:
        """Ask the plugins for a tap of the stream that `event` reports. Several taps become one."""
        taps = [
            tap
            for tap in (observer.ask_for_tap(event) for observer in self._signals)
            if tap is not None
        ]
        return _Taps(taps) if len(taps) > 1 else next(iter(taps), None)

    def connection_opened(self, event: ConnectionOpened) -> None:
        """Report that a connection is open."""
        for observer in self._connections_opened:
            observer.notify(event)

    def connection_closed(self, event: ConnectionClosed) -> None:
        """Report that a connection has ended."""
        for observer in self._connections_closed:
            observer.notify(event)

    def connection_refused(self, event: ConnectionRefused) -> None:
        """Report that a server has refused a connection."""
        for observer in self._connections_refused:
            observer.notify(event)

    def connection_suspended(self, event: ConnectionSuspended) -> None:
        """Report that a connection has lost its transport, and is kept."""
        for observer in self._suspended:
            observer.notify(event)

    def connection_resumed(self, event: ConnectionResumed) -> None:
        """Report that a connection goes on over another transport."""
        for observer in self._resumed:
            observer.notify(event)

    def stream_opened(self, event: StreamOpened) -> None:
        """Report that a subscription has begun."""
        for observer in self._streams_opened:
            observer.notify(event)

    def stream_ended(self, event: StreamEnded) -> None:
        """Report that a subscription has ended."""
        for observer in self._streams_ended:
            observer.notify(event)

    def reconnect(self, event: ReconnectEvent) -> None:
        """Report a step from a lost connection to the next one."""
        for observer in self._reconnects:
            observer.notify(event)


# In the order of the fields of Events.
OBSERVER_HOOKS: Final = (
    "penstock_connection_opened",
    "penstock_connection_closed",
    "penstock_stream_opened",
    "penstock_stream_ended",
    "penstock_connection_refused",
    "penstock_reconnect",
    "penstock_signals",
    "penstock_connection_suspended",
    "penstock_connection_resumed",
)
