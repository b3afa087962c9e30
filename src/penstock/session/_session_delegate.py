"""The delegate of a session: the session calls it for each event,
and it answers by calling the session, now or later.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from penstock.session._sending_stream import SendingStream


class SessionDelegate(Protocol):
    """Drives a session and knows the publishers."""

    # Any: the class lies in a layer above this one.
    def identify(self) -> Any:
        """Return the identity of the peer, for extensions."""

    def recognise(self, principal: Any, /) -> None:
        """Note the principal of the peer, which an extension has recognised.
        Called before `on_open`.
        """

    def await_result(
        self, awaitable: Awaitable[Any], then: Callable[[Any, Exception | None], None], /
    ) -> None:
        """Await in a task, and call `then` with the result or the exception.
        The end of the connection cancels it.
        """

    def wake(self) -> None:
        """Send: something waits in the outbox that was empty."""

    def on_open(self) -> None:
        """Note that both hellos are exchanged."""

    # Calls may come while received bytes are acted on. A delegate that cannot decide at once starts
    # a task, and answers later; until then the stream holds its demand and its place.
    def serve(self, stream: SendingStream, /) -> None:
        """Decide on a stream to `stream.target`:
        call `stream.accept` or `stream.refuse`, now or later.
        """

    def attach(self, stream: SendingStream, /) -> None:
        """Subscribe an accepted stream to its publisher."""

    def source_of(self, stream: SendingStream, /) -> Any:
        """Return the source that was found for a stream that is being accepted, or None."""

    def on_introduction(self, data: bytes, /) -> None:
        """Examine the peer's introduction:
        call `Session.admit` or `Session.close`, now or later.
        """

    def on_fire_and_forget(self, target: Any, /) -> None:
        """Handle a request that has no answer."""

    def on_publisher_failed(self, stream: SendingStream, error: BaseException, /) -> None:
        """Report the failure of a publisher that was served;
        the peer is told less than `error` says.
        """

    def on_stream_refused(self, stream: SendingStream, reason: str, /) -> None:
        """Note that a stream was refused, or ended because the peer broke its contract; `reason`
        says more than the peer is told.
        """

    def on_warning(self, warning: Exception, /) -> None:
        """Report an act of the peer that is allowed and deserves attention, or a failure that
        does not end the connection by itself.
        """

    def on_end(self, error: Exception, /) -> None:
        """Note that the session has ended, for this reason. Called once."""
