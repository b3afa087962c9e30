"""Stand-ins for the objects around a session that is over:
the session refers to these, so that the others are freed.

Connections consist of objects that refer to one another: the session and its delegate, the channel
and the tables of streams. A server whose clients come and go left some 220 objects in circles for
each, and the garbage collector then held up all other connections.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Final, final

from penstock.session._dialect import Dialect


@final
class Released:
    """The delegate of a session that was released, and the owner of its streams. No call comes
    any more; a late one does nothing.
    """

    __slots__ = ()

    def identify(self) -> None:
        """Return None: the peer is forgotten."""

    def recognise(self, _principal: Any, /) -> None:
        """Do nothing."""

    def await_result(
        self, _awaitable: Awaitable[Any], _then: Callable[[Any, Exception | None], None], /
    ) -> None:
        """Do nothing."""

    def wake(self) -> None:
        """Do nothing."""

    def on_open(self) -> None:
        """Do nothing."""

    def serve(self, _stream: Any, /) -> None:
        """Do nothing."""

    def attach(self, _stream: Any, /) -> None:
        """Do nothing."""

    def source_of(self, _stream: Any, /) -> None:
        """Return None: no stream is accepted any more."""

    def on_introduction(self, _data: bytes, /) -> None:
        """Do nothing."""

    def on_fire_and_forget(self, _target: Any, /) -> None:
        """Do nothing."""

    def on_publisher_failed(self, _stream: Any, _error: BaseException, /) -> None:
        """Do nothing."""

    def on_stream_refused(self, _stream: Any, _reason: str, /) -> None:
        """Do nothing."""

    def on_warning(self, _warning: Exception, /) -> None:
        """Do nothing."""

    def on_end(self, _error: Exception, /) -> None:
        """Do nothing."""

    def attach_publisher(self, _stream: Any, /) -> None:
        """Do nothing."""

    def on_sending_refused(self, _stream: Any, _reason: str, /) -> None:
        """Do nothing."""

    def on_sending_ended(self, _stream: Any, /) -> None:
        """Do nothing."""

    def on_receiving_cancelled(self, _stream: Any, _unfinished: int, /) -> None:
        """Do nothing."""


RELEASED: Final = Released()


def release_dialect(dialect: Dialect) -> None:
    """Let a dialect that is not used any more break its circles. That of a plugin may lack the
    method: the collector frees it.
    """
    release: Callable[[], None] | None = getattr(dialect, "release", None)
    if release is not None:
        release()
