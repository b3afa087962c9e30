"""Who drives a session: it is told of all that happens by plain calls, and answers by calling the session, now or later."""

from typing import TYPE_CHECKING, Any, Protocol

from penstock.api import PenstockError

if TYPE_CHECKING:
    from penstock.session._sending_stream import SendingStream


class SessionDelegate(Protocol):
    """Who drives a session, and knows the publishers."""

    def wake(self) -> None:
        """There is something to send now; there was not, a moment ago."""

    def opened(self) -> None:
        """Both sides have said hello."""

    def serve(self, stream: "SendingStream", /) -> None:
        """The peer subscribes to `stream.target`: call `stream.accept` or `stream.refuse`, now or later."""

    def attach(self, stream: "SendingStream", /) -> None:
        """Subscribe an accepted stream to its publisher."""

    def introduced(self, data: bytes, /) -> None:
        """The peer has said who it is and what it wants: call `Session.admit` or `Session.leave`, now or later."""

    def fired(self, target: Any, /) -> None:
        """The peer says something that has no answer."""

    def publisher_failed(self, stream: "SendingStream", error: BaseException, /) -> None:
        """A publisher of this side's failed while it was served: what crossed the wire says less than `error`."""

    def warned(self, warning: PenstockError, /) -> None:
        """Something that the peer does deserves attention, and is not forbidden."""

    def over(self, error: Exception, /) -> None:
        """The session has ended, for this reason. Called once."""
