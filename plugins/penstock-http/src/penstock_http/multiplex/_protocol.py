"""One HTTP/2 connection without input and output: h2, the gate before it, and its settings.

Rules of this file:

* After each call the caller sends what `take` returns.
  h2 drops what it has not handed out when a GOAWAY arrives.
* Credit for received data is given back by `acknowledge` alone,
  when the data was taken out of the stream.
* h2 treats a GOAWAY, sent or received, as the end of all streams. RFC 9113, 6.8, does not:
  `receive` and `go_away` correct that.
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Final

from h2.config import H2Configuration
from h2.connection import ConnectionState, H2Connection
from h2.errors import ErrorCodes
from h2.events import ConnectionTerminated, DataReceived, Event, RemoteSettingsChanged
from h2.exceptions import H2Error, ProtocolError
from h2.settings import SettingCodes, Settings
from hyperframe.frame import GoAwayFrame

from penstock_http.multiplex import _floods as floods
from penstock_http.multiplex._frame_filter import MAX_HEADER_BLOCK, FrameFilter

FIRST_FRAME: Final = 16 << 10
MAX_FRAME: Final = 128 << 10
"""Bytes of one frame: of a stranger, and of a peer that has said hello.

With 16 KiB each byte costs three times as much, because a frame has its price. An element of 64 KiB
and its header go into one.
"""

FIRST_WINDOW: Final = (64 << 10) - 1
"""Bytes that a stream, and the whole connection, may hold of a stranger: the defaults of RFC
9113, which a client may use at once.
"""

STREAM_WINDOW: Final = 1 << 20
CONNECTION_WINDOW: Final = 4 << 20
"""Bytes that a stream, and the whole connection, may hold of a peer that has said hello."""

MAX_STREAMS: Final = 100
"""Streams that a client may have open at the same time."""

MAX_UNKNOWN_SETTINGS: Final = 64
"""h2 keeps a setting of any number for as long as the connection lives. There are 65,536
numbers, at some 700 bytes each.
"""

LEAST_PUSHES: Final = 4
"""Pushes that a client must permit at the same time, to get any."""

Headers = list[tuple[bytes, bytes]]


class _Connection(H2Connection):
    # 65,536 in h2, and each id of a connection that lives long is kept.
    MAX_CLOSED_STREAMS = 1024


class Http2Protocol:
    """The state of one connection."""

    def __init__(self, *, is_client: bool) -> None:
        self._is_client = is_client
        self._h2 = _Connection(H2Configuration(client_side=is_client))
        values = {
            SettingCodes.INITIAL_WINDOW_SIZE: STREAM_WINDOW if is_client else FIRST_WINDOW,
            SettingCodes.MAX_FRAME_SIZE: MAX_FRAME if is_client else FIRST_FRAME,
            SettingCodes.MAX_HEADER_LIST_SIZE: MAX_HEADER_BLOCK,
            SettingCodes.MAX_CONCURRENT_STREAMS: 0 if is_client else MAX_STREAMS,
        }
        if is_client:
            values[SettingCodes.ENABLE_PUSH] = 0
        self._h2.local_settings = Settings(client=is_client, initial_values=values)
        # h2 copies neither of the two out of the first settings. The gate bounds frames;
        # h2 would apply a new size too late.
        self._h2.max_inbound_frame_size = MAX_FRAME
        self._h2.decoder.max_header_list_size = MAX_HEADER_BLOCK
        self.floods: floods.Floods = floods.Floods()
        self.gate: FrameFilter = FrameFilter(
            self.floods, is_server=not is_client, max_frame=values[SettingCodes.MAX_FRAME_SIZE]
        )
        self._is_wide = False  # the window of the connection was raised
        self._by_hand = b""  # a GOAWAY: h2's own call would end the streams

    # --- receiving

    def begin(self) -> None:
        """Say the first words: the preface of a client, and the settings."""
        self._h2.initiate_connection()
        if self._is_client:
            self.widen()

    def receive(self, data: bytes | bytearray, now: float) -> Iterator[list[Event]]:
        """Take bytes of the peer and yield the events of some frames at a time. Raises
        RuleBroken; a GOAWAY waits to be sent then.
        """
        slices = self.gate.slices(data, now)
        while True:
            try:
                piece = next(slices, None)
                if piece is None:
                    return
                events = self._h2.receive_data(piece)
            except floods.RuleBroken as error:
                self.terminate(error.code, str(error))
                raise
            except ProtocolError as error:  # h2 has made the GOAWAY
                raise floods.RuleBroken(ErrorCodes(error.error_code), str(error)) from None
            self._look_at(events, now)
            yield events

    def _look_at(self, events: list[Event], now: float) -> None:
        """Count floods that the frame filter cannot see, and let streams live after a GOAWAY."""
        for event in events:
            if isinstance(event, DataReceived):
                # A frame of padding alone costs as much as an empty one.
                if not event.data and event.flow_controlled_length and event.stream_ended is None:
                    self.count(floods.EMPTY, now)
            elif isinstance(event, ConnectionTerminated):
                if event.error_code == ErrorCodes.NO_ERROR:
                    self._h2.state_machine.state = (
                        ConnectionState.CLIENT_OPEN
                        if self._is_client
                        else ConnectionState.SERVER_OPEN
                    )
            elif (
                isinstance(event, RemoteSettingsChanged)
                and len(self._h2.remote_settings) > MAX_UNKNOWN_SETTINGS
            ):
                text = f"more than {MAX_UNKNOWN_SETTINGS} different settings"
                self.terminate(floods.CALM, text)
                raise floods.RuleBroken(floods.CALM, text)

    def count(self, kind: str, now: float) -> None:
        """Count one of `kind`, beside those that the gate counts.
        Raises RuleBroken as `receive` does.
        """
        try:
            self.floods.count(kind, now)
        except floods.RuleBroken as error:
            self.terminate(error.code, str(error))
            raise

    def acknowledge(self, stream_id: int, size: int) -> None:
        """Give back the credit for `size` bytes: they were taken out of the stream."""
        if size:
            self._h2.acknowledge_received_data(size, stream_id)

    def widen(self, stream_id: int | None = None) -> None:
        """Let the peer send more before it waits: on the connection, and on a stream that was
        opened with the first window.
        """
        if not self._is_wide:
            self._is_wide = True
            if not self._is_client:
                self._h2.update_settings({SettingCodes.MAX_FRAME_SIZE: MAX_FRAME})
                self.gate.max_frame = MAX_FRAME
            self._h2.increment_flow_control_window(CONNECTION_WINDOW - FIRST_WINDOW)
        if stream_id is not None:
            self._h2.increment_flow_control_window(STREAM_WINDOW - FIRST_WINDOW, stream_id)

    @property
    def permits_pushes(self) -> bool:
        """Whether the client permits pushes: `LEAST_PUSHES` at the same time at least."""
        remote = self._h2.remote_settings
        return bool(remote.enable_push) and remote.max_concurrent_streams >= LEAST_PUSHES

    # --- sending

    def take(self) -> bytes:
        """Return the bytes that are to be sent."""
        data = self._h2.data_to_send()
        if self._by_hand:
            data, self._by_hand = data + self._by_hand, b""
        return data

    def next_id(self) -> int:
        """Return the id of the next stream of this side."""
        return self._h2.get_next_available_stream_id()

    def push(self, stream_id: int, headers: Iterable[tuple[str, str]]) -> int:
        """Promise the answer to a request with these headers, and return the id of its stream.
        Raises H2Error.
        """
        promised = self.next_id()
        self._h2.push_stream(stream_id, promised, list(headers))
        return promised

    def send_headers(
        self, stream_id: int, headers: Iterable[tuple[str, str]], *, ends: bool = False
    ) -> None:
        """Send the headers of a request or of an answer.
        Raises ProtocolError if the peer allows no more streams.
        """
        self._h2.send_headers(stream_id, list(headers), end_stream=ends)

    def room(self, stream_id: int) -> int:
        """Return how many bytes one DATA frame of the stream may have now."""
        h2 = self._h2
        return min(
            h2.outbound_flow_control_window,
            h2.local_flow_control_window(stream_id),
            h2.max_outbound_frame_size,
            MAX_FRAME,
        )

    def send_data(self, stream_id: int, data: memoryview, *, ends: bool = False) -> None:
        """Send `data`, which `room` allows."""
        self._h2.send_data(stream_id, data, end_stream=ends)
        self.floods.on_data_sent()

    def end(self, stream_id: int) -> None:
        """End this side's half of a stream."""
        self._h2.end_stream(stream_id)

    def reset(self, stream_id: int, code: ErrorCodes) -> None:
        """End a stream at once. Does nothing if it is over."""
        with suppress(H2Error):  # both sides have ended it, or the peer has reset it
            self._h2.reset_stream(stream_id, code)

    def ping(self, number: int) -> None:
        """Ask the peer for a sign of life."""
        self._h2.ping(number.to_bytes(8))

    def go_away(self) -> None:
        """Tell the peer that no further stream is accepted. Those that are open go on."""
        frame = GoAwayFrame(
            0, last_stream_id=self._h2.highest_inbound_stream_id, error_code=ErrorCodes.NO_ERROR
        )
        self._by_hand += frame.serialize()

    def terminate(self, code: ErrorCodes, text: str) -> None:
        """End the connection: the last frame says why."""
        self._h2.close_connection(code, text.encode("ascii", "replace"))
