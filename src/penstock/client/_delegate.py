"""The delegate of a client's session: it takes the session's events, and has the publishers that
the program offers to the peer.
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import attrs

from penstock.api import NO_SUCH, NotAvailable, Subscription
from penstock.client._published import failed_publisher, name_of
from penstock.client._reports import report
from penstock.client._settings import EndpointSettings
from penstock.session import Fault, SendingStream, Session, ignore
from penstock.spi import PeerIdentity


class ClientDelegate:
    """Answers the calls of the session of a client."""

    session: Session

    def __init__(self, settings: EndpointSettings, identity: PeerIdentity) -> None:
        self.settings: EndpointSettings = settings
        self.identity: PeerIdentity = identity
        self.opened_at: float | None = None
        """When both sides had said hello, if they have."""
        self.reason: Exception | None = None
        """Why the connection is over, once it is."""
        self.wake: Callable[[], None] = ignore
        """Called when something is queued while nothing was."""
        self.on_change: Callable[[], None] = ignore
        """Called when the connection has opened, and when it is over."""
        self.on_opened: Callable[[], None] = ignore
        """Called when both sides have said hello."""
        self.on_earlier: Callable[[float], object] = ignore
        """Called with a time, if something is due then and `tick` has not returned that time."""

    def forget_owner(self) -> None:
        """Call the owner no more: the transport is closed."""
        self.wake = self.on_change = self.on_opened = self.on_earlier = ignore

    @abstractmethod
    def attach(self, stream: SendingStream, /) -> None:
        """Attach the publisher of an accepted stream."""

    def identify(self) -> PeerIdentity:
        """Return the identity of the peer."""
        return self.identity

    def recognise(self, principal: Any) -> None:
        """Add the principal to the identity of the peer."""
        self.identity = attrs.evolve(self.identity, principal=principal)

    def on_open(self) -> None:
        """Both sides have said hello."""
        self.opened_at = self.session.channel.now
        self.on_opened()
        self.on_change()

    def serve(self, stream: SendingStream) -> None:
        """Accept a stream to a publisher of the program;
        its iterator is made with the first demand.
        """
        # This client handles no request with data, and no channel.
        if name_of(stream.target) in self.settings.publishers:
            stream.accept(idle_until_demand=True)
        else:
            stream.refuse(NO_SUCH, fault=Fault.UNTOUCHED)

    def on_introduction(self, data: bytes) -> None:
        """Do nothing: only a server gets one."""

    def on_fire_and_forget(self, target: Any) -> None:
        """Drop a message that has no answer: this client handles none."""

    def on_publisher_failed(self, stream: SendingStream, error: BaseException) -> None:
        """Report the failure of a publisher of the program."""
        # A publisher that denies its name has not failed.
        if not isinstance(error, NotAvailable):
            report(self.settings.on_violation, failed_publisher(error))

    def stop_publishers(self, publishers: Sequence[Subscription]) -> None:
        """Cancel each of the publishers."""
        for each in publishers:
            each.cancel()

    def on_stream_refused(self, stream: SendingStream, reason: str) -> None:
        """Do nothing: the peer was told."""

    def on_warning(self, warning: Exception) -> None:
        """Report what deserves attention and ends nothing."""
        report(self.settings.on_violation, warning)

    def on_end(self, error: Exception) -> None:
        """Note why the session has ended."""
        self.reason = error
        self.on_change()
