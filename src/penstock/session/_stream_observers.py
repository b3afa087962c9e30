"""Calls the extensions of a connection when its streams open, begin and end. Without such an
extension a connection has no object of this module.

An extension that raises ends its connection, and nothing else.
"""

from collections.abc import Callable
from typing import Any, Final

from penstock.api import HOLD, ActiveExtension, PluginError, ProtocolError
from penstock.session._dialect_host import DialectHost
from penstock.session._reasons import DRAINING
from penstock.session._sending_stream import SendingStream
from penstock.session._states import SendingState

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
"""The optional methods of an active extension that this module calls."""


class StreamObservers:
    """The extensions that have at least one of `METHODS`, and the calls of these methods."""

    __slots__ = ("_methods", "_session")

    def __init__(self, session: DialectHost) -> None:
        self._session = session
        self._methods: dict[str, list[Callable[..., Any]]] = {name: [] for name in METHODS}

    def add(self, active: ActiveExtension) -> bool:
        """Look up the methods of an extension. Return whether it has any of them."""
        # Looked up once for the connection, and not by name for each stream.
        found = {
            name: method for name in METHODS if (method := getattr(active, name, None)) is not None
        }
        for name, method in found.items():
            self._methods[name].append(method)
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
        refusal = DRAINING if refusal is None and streams.drain.until is not None else refusal
        if refusal is None:
            streams.delegate.serve(stream)
        else:
            stream.refuse(refusal)

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
