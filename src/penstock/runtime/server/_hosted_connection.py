"""The server of one connection that its transport attends:
deadlines, the end of being a stranger, and the shutdown.

Rules of this file:

* Until the client is recognised, the connection has the time of a handshake,
  counted from the accept.
* A shutdown lets a recognised connection end by itself, for `Limits.drain` seconds.
  A stranger is cut at once.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from inspect import isawaitable
from typing import Any, Final

import attrs
import trio

from penstock.api import (
    AuthRefused,
    ConnectionLost,
    Limits,
    NotAvailable,
    PublicError,
    Rejected,
    Subscriber,
)
from penstock.core import report
from penstock.runtime.connection import AccessLog, ConnectionSettings
from penstock.runtime.server._admission import Slot
from penstock.runtime.server._attempts import Attempts
from penstock.runtime.server._hosted_streams import HostedStreams
from penstock.session import ATTEMPTS, AUTH
from penstock.spi import (
    Connection,
    ConnectionHost,
    PeerIdentity,
    RequestTransport,
    Reservation,
    ServerStatistics,
)

REFUSAL_DELAY: Final = 0.25
"""Seconds from the arrival of credentials to their refusal, as in the auth extension."""


class HostedConnection(ConnectionHost):
    """The host of one connection."""

    # A plain attribute: each request of HTTP looks at it several times.
    is_draining: bool = False

    def __init__(
        self,
        place: Slot,
        settings: ConnectionSettings,
        streams: HostedStreams,
        *,
        began: float,
        attempts: Attempts | None,
        on_recognised: Callable[[Slot], None],
        adopt: Callable[[Connection], str | None],
        statistics: Callable[[], ServerStatistics],
    ) -> None:
        """`began` is when the connection was accepted. `attempts` examines credentials; None if
        the service lets everybody in.
        """
        self.limits: Limits = settings.limits
        self.address: str = place.address
        self.is_recognised: bool = False
        """Whether the client is known by now."""
        self._place = place
        self._settings = settings
        self._streams = streams
        self._attempts = attempts
        self._on_recognised = on_recognised
        self._adopt = adopt
        self.statistics: Callable[[], ServerStatistics] = statistics
        self._scope = trio.CancelScope(deadline=began + settings.limits.handshake_timeout)
        self._draining = trio.Event()

    async def serve_connection(
        self, transport: RequestTransport, connection: Connection
    ) -> Connection | None:
        """Let `transport` serve_connection `connection`. Raises TooSlowError if the client does
        not make itself known in time.
        """
        result: Connection | None = None
        # From now on a shutdown asks this connection to end. Without it, it would cancel the task.
        self._place.drain = self._start_draining
        try:
            with self._scope:
                # The transport may keep it until the client leaves,
                # so the deadline is lifted by `recognise` and not here.
                result = await transport.serve_connection(connection, self)
        except (ConnectionLost, trio.BrokenResourceError, trio.ClosedResourceError):
            # Nothing is reported, because a client may leave at any time.
            return None  # the client has gone
        except Exception as error:  # boundary: a transport may be a plugin
            report(self._settings.on_violation, error)
            return None
        finally:
            self._place.drain = None
        # Then the deadline of the handshake has passed:
        # `recognise` lifts it, and a shutdown sets the event first.
        if self._scope.cancelled_caught and not self.is_recognised and not self.is_draining:
            raise trio.TooSlowError
        return None if self.is_draining else result

    # --- for the transport

    async def wait_draining(self) -> None:
        await self._draining.wait()

    def recognise(self) -> None:
        if not self.is_recognised:
            self.is_recognised = True
            self._scope.deadline = float("inf")
            self._on_recognised(self._place)

    async def authenticate(self, scheme: str, data: bytes, peer: PeerIdentity) -> PeerIdentity:
        if self._attempts is None:
            return peer
        began = trio.current_time()
        failure: Exception | None = None
        try:
            verdict = self._attempts(scheme, data, peer)
            if isawaitable(verdict):
                verdict = await verdict
        except Exception as error:  # boundary: the program's function
            # These three refuse. They are not reported, because a peer must not write lines of log.
            if not isinstance(error, NotAvailable | PublicError | Rejected):
                report(self._settings.on_violation, error)
            verdict, failure = None, error
        if verdict is None or verdict is False:
            is_temporary = isinstance(failure, Rejected) and failure.temporary
            # A client that has shown nothing is asked to, and was not refused.
            if data:
                self._streams.on_refused(ATTEMPTS if is_temporary else AUTH, peer, self.address)
            # From the arrival on, so that the time of a refusal tells nothing about the look at the
            # credentials.
            await trio.sleep_until(began + REFUSAL_DELAY)
            if is_temporary and failure is not None:
                raise failure
            raise AuthRefused("the credentials were refused", processed=False)
        return attrs.evolve(peer, principal=verdict)

    def adopt(self, connection: Connection) -> str | None:
        return self._adopt(connection)

    async def open(
        self,
        name: str,
        peer: PeerIdentity,
        subscriber: Subscriber[Any],
        *,
        protocol: str,
        collects: bool = False,
        reservation: Reservation | None = None,
        trace: str = "",
    ) -> None:
        await self._streams.open(
            name,
            peer,
            subscriber,
            protocol=protocol,
            address=self.address,
            collects=collects,
            reservation=reservation,
            trace=trace,
        )

    def reserve(
        self, peer: PeerIdentity, held: Callable[[], int], on_cut: Callable[[str], None]
    ) -> Reservation:
        return self._streams.reserve(peer, held, on_cut, address=self.address)

    def start_soon(
        self, function: Callable[..., Awaitable[None]], /, *args: object, name: str
    ) -> None:
        # A task that is started after `stop` would not be cancelled by it.
        if not self._streams.is_stopping:
            self._streams.scope.spawn(partial(function, *args), name=name)

    @property
    def logs_access(self) -> bool:
        return AccessLog.if_enabled(self.address, accepted=True) is not None

    def write_access(self, peer: PeerIdentity, kind: str, fields: str) -> None:
        # Asked for each line: the level of the logger may change while the connection lasts.
        access = AccessLog.if_enabled(self.address, accepted=True)
        if access is not None:
            access.write_line(peer, kind, fields)

    # --- for the server

    def _start_draining(self) -> None:
        self.is_draining = True
        self._draining.set()
        if self.is_recognised:
            self._scope.deadline = trio.current_time() + self.limits.drain
        else:
            # A stranger has asked for nothing yet, so nothing is lost.
            self._scope.cancel()
