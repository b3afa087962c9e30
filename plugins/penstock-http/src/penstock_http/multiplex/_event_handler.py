"""The events of the peer, one by one: each changes a stream, or ends the connection."""

from collections.abc import Callable, Iterable
from typing import Any, Final

from h2.errors import ErrorCodes
from h2.events import (
    ConnectionTerminated,
    DataReceived,
    Event,
    RemoteSettingsChanged,
    RequestReceived,
    ResponseReceived,
    StreamEnded,
    StreamReset,
    WindowUpdated,
)

from penstock_http.multiplex import _floods as floods
from penstock_http.multiplex._frame_writer import FrameWriter
from penstock_http.multiplex._protocol import Headers, Http2Protocol
from penstock_http.multiplex._states import Http2StreamState
from penstock_http.multiplex._stream import Http2Stream
from penstock_http.multiplex._streams import Streams

MAX_SAID: Final = 200
"""Bytes of a peer's GOAWAY that are told to people."""


class EventHandler:
    """The events of one connection."""

    def __init__(
        self,
        core: Http2Protocol,
        outgoing: FrameWriter,
        streams: Streams,
        *,
        on_request: Callable[[Http2Stream, Headers], None] | None,
        give_up: Callable[[str], None],
    ) -> None:
        """`on_request` is called for each request of a client; None for a client. `give_up` ends
        the connection with a text.
        """
        self._core = core
        self._outgoing = outgoing
        self._streams = streams
        self._on_request = on_request
        self._give_up = give_up

    def handle(self, event: Event, now: float) -> None:
        """Act on one event. The others are those that h2 has acted on. Raises RuleBroken."""
        match event:
            case DataReceived():
                self._receive_data(event)
            case WindowUpdated():
                self._receive_credit(event.stream_id)
            case RequestReceived():
                self._receive_request(event)
            case ResponseReceived():
                stream = self._streams.get(event.stream_id)
                if stream is not None:
                    stream.on_answer(_in_bytes(event.headers))
            case StreamEnded():
                self._receive_end(event.stream_id)
            case StreamReset():
                self._receive_reset(event, now)
            case RemoteSettingsChanged():
                self._receive_credit(0)  # the first window of streams may have changed
            case ConnectionTerminated():
                self._receive_goaway(event)
            case _:
                pass

    def _receive_request(self, event: RequestReceived) -> None:
        stream = self._streams.add(event.stream_id)
        if self._streams.is_closing or self._on_request is None:
            self._streams.reset(
                stream, ErrorCodes.REFUSED_STREAM, "the server accepts no more streams"
            )
        else:
            self._on_request(stream, _in_bytes(event.headers))

    def _receive_data(self, event: DataReceived) -> None:
        stream = self._streams.get(event.stream_id)
        if stream is None:
            self._core.acknowledge(event.stream_id, event.flow_controlled_length)
            return
        # The credit for padding goes back at once.
        self._core.acknowledge(event.stream_id, event.flow_controlled_length - len(event.data))
        if event.data:
            stream.on_data(event.data)

    def _receive_end(self, stream_id: int) -> None:
        stream = self._streams.get(stream_id)
        if stream is not None:
            stream.on_end()
            if stream.state is Http2StreamState.CLOSED:
                self._streams.forget(stream)

    def _receive_reset(self, event: StreamReset, now: float) -> None:
        stream = self._streams.get(event.stream_id)
        if stream is not None:
            stream.on_broken(f"the peer reset the stream ({_name(event.error_code)})")
            self._streams.forget(stream)
        if not event.remote_reset:
            # The peer broke a rule of the stream, and h2 has reset it.
            self._core.count(floods.RESETS, now)

    def _receive_credit(self, stream_id: int) -> None:
        only = self._streams.get(stream_id)
        for stream in self._streams if only is None else (only,):
            self._outgoing.on_credit(stream)

    def _receive_goaway(self, event: ConnectionTerminated) -> None:
        self._streams.close()
        if event.error_code != ErrorCodes.NO_ERROR:
            said = ascii((event.additional_data or b"")[:MAX_SAID].decode("latin-1"))[1:-1]
            self._give_up(
                f"the peer ended the connection with {_name(event.error_code)}"
                + (f": {said}" if said else "")
            )
        elif self._on_request is None:
            for stream in self._streams:
                if stream.id > (event.last_stream_id or 0):
                    self._streams.reset(
                        stream,
                        ErrorCodes.CANCEL,
                        "the server goes away, and has not looked at the request",
                    )


def _name(code: ErrorCodes | int | None) -> str:
    return code.name if isinstance(code, ErrorCodes) else f"the code {code}"


def _in_bytes(headers: Iterable[tuple[Any, Any]]) -> Headers:
    # h2 types them as text or bytes; without `header_encoding` they are bytes.
    return [(bytes(name), bytes(value)) for name, value in headers]
