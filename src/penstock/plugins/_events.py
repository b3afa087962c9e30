"""What happens to connections and streams, told to plugins that want to know: metrics, traces, audits.

Rules of this file:

* Observers are plain functions, called on the spot: they must be quick, must not wait, and get records that they cannot change.
* An observer that raises disturbs nobody: the first time is logged as an error, every later time as a debug message.
* With no observer an event costs one look at an empty tuple; ask `wants_streams` before making a record for each stream.
"""

import enum
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from penstock.plugins._peer_identity import PeerIdentity

_log: Final = logging.getLogger("penstock.plugins")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionOpened:
    """A connection is ready: its handshakes are done."""

    connection: int
    """Its number in this process, from 1."""

    address: str
    """The URL that was connected to, or listened at; without a publisher's name."""

    dialect: str
    """The protocol: ``rsio``."""

    accepted: bool
    """True where the peer connected to us."""

    peer: PeerIdentity
    """Who is there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionClosed:
    """A connection is over, and everything that ran for it."""

    connection: int
    """The number that `ConnectionOpened` told."""

    reason: str
    """The reason of the goodbye, or what else ended it; a fixed token comes first."""

    error: BaseException | None = None
    """What ended it, where it was not a goodbye."""


class Outcome(enum.Enum):
    """How a stream ended."""

    COMPLETED = "completed"
    """Its publisher had no more."""

    FAILED = "failed"
    """Its publisher failed, or refused it."""

    CANCELLED = "cancelled"
    """Its subscriber wanted no more."""

    LOST = "lost"
    """Its connection ended first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamOpened:
    """A subscription over a connection has begun."""

    connection: int
    """The number of its connection."""

    stream: int
    """Its id on that connection; ids of the two directions are counted apart."""

    publisher: str
    """The name that was subscribed to."""

    outbound: bool
    """True where we publish and the peer subscribes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamEnded:
    """A subscription over a connection is over: there is one of these for each `StreamOpened`."""

    connection: int
    """The number of its connection."""

    stream: int
    """Its id."""

    outbound: bool
    """As in `StreamOpened`: together with connection and stream it names the subscription."""

    outcome: Outcome
    """How it ended."""

    elements: int
    """How many elements were sent, or arrived."""

    error: BaseException | None = None
    """The failure, where there was one."""


Event = ConnectionOpened | ConnectionClosed | StreamOpened | StreamEnded
"""What an observer is told."""


@dataclass(slots=True)
class _Observer:
    """One function of one plugin."""

    plugin: str
    call: Callable[[Event], object]
    failures: int = 0

    def tell(self, event: Event) -> None:
        try:
            self.call(event)
        # The boundary to code of others: whatever an observer raises must not reach the connection that it observes.
        except Exception:
            self.failures += 1
            level = logging.ERROR if self.failures == 1 else logging.DEBUG
            what = type(event).__name__
            _log.log(level, "plugin %r raised in its observer of %s; later failures are logged as debug", self.plugin, what, exc_info=True)


@dataclass(frozen=True, slots=True)
class Events:
    """Tells observers what happens. Made by `build_registry`; the runtime calls it. None of its methods raises or checkpoints."""

    _connections_opened: tuple[_Observer, ...] = field(default=(), repr=False)
    _connections_closed: tuple[_Observer, ...] = field(default=(), repr=False)
    _streams_opened: tuple[_Observer, ...] = field(default=(), repr=False)
    _streams_ended: tuple[_Observer, ...] = field(default=(), repr=False)

    @classmethod
    def of(cls, observers: Iterable[tuple[str, str, Callable[[Event], object]]]) -> "Events":
        """Make one of triples: the plugin's name, the name of the hook, the function. For `build_registry` and for tests."""
        by_hook: dict[str, list[_Observer]] = {hook: [] for hook in OBSERVER_HOOKS}
        for plugin, hook, call in observers:
            by_hook[hook].append(_Observer(plugin, call))
        return cls(*(tuple(by_hook[hook]) for hook in OBSERVER_HOOKS))

    @property
    def wants_connections(self) -> bool:
        """Whether anybody listens to connections."""
        return bool(self._connections_opened or self._connections_closed)

    @property
    def wants_streams(self) -> bool:
        """Whether anybody listens to streams: ask before making a record for each of a million."""
        return bool(self._streams_opened or self._streams_ended)

    def connection_opened(self, event: ConnectionOpened) -> None:
        """Tell that a connection is ready."""
        for observer in self._connections_opened:
            observer.tell(event)

    def connection_closed(self, event: ConnectionClosed) -> None:
        """Tell that a connection is over."""
        for observer in self._connections_closed:
            observer.tell(event)

    def stream_opened(self, event: StreamOpened) -> None:
        """Tell that a subscription has begun."""
        for observer in self._streams_opened:
            observer.tell(event)

    def stream_ended(self, event: StreamEnded) -> None:
        """Tell that a subscription is over."""
        for observer in self._streams_ended:
            observer.tell(event)


OBSERVER_HOOKS: Final = (
    "penstock_connection_opened",
    "penstock_connection_closed",
    "penstock_stream_opened",
    "penstock_stream_ended",
)
