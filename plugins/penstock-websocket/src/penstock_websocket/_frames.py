"""Bytes to events and back, on wsproto's frames. No input and no output happen here.

Rules of this file:

* A frame is judged when its header has arrived, before its body: its length and the bytes of the
  message so far are compared with the bound. wsproto's own connection, and trio-websocket on it,
  judge a message after they have collected it.
* The payload of a frame is passed on as it arrives. This file collects no message.
* A text is refused at its first frame, so that no text is ever decoded. The one text that is
  examined is the reason of a Close.
* Frames that carry nothing, pings and pongs have a budget:
  an empty frame costs its sender 6 bytes and the receiver 10 us.
"""

from typing import Final, cast

import attrs
from wsproto.frame_protocol import FrameDecoder, FrameProtocol, Header, Opcode, ParseFailed

from penstock.api import TokenBucket

MAX_FRAMES: Final = 1024
"""Frames of one message. The CVEs of NATS and others are messages of millions of empty frames."""

CONTROL_BURST: Final = 100
CONTROL_RATE: Final = 10.0
"""Pings and pongs: 100 at once, and 10 a second."""

EMPTY_BURST: Final = 1000
EMPTY_RATE: Final = 33.0
"""Empty frames, at the price of an oddity (`Limits.glitch_burst`, `Limits.glitch_rate`).
200,000 of them once took 0.65 s.
"""

NORMAL: Final = 1000
GOING_AWAY: Final = 1001
PROTOCOL_ERROR: Final = 1002
UNSUPPORTED: Final = 1003
NO_CODE: Final = 1005
BAD_TEXT: Final = 1007
POLICY: Final = 1008
TOO_BIG: Final = 1009
INTERNAL: Final = 1011

# RFC 6455, 7.4: the codes below 3000 that a peer may send;
# 1012 to 1014 are in the registry of IANA.
_LEGAL_CODES: Final = frozenset(
    {1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014}
)
_PRIVATE_CODES: Final = range(3000, 5000)
_CODE_SIZE: Final = 2
_MAX_REASON: Final = 123


class RuleBroken(Exception):
    """The peer has broken a rule of WebSocket, or a bound. `code` goes into the Close frame."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


@attrs.frozen
class Data:
    """Bytes of a message."""

    payload: bytes
    ends_message: bool


@attrs.frozen
class Ping:
    """A ping, which wants a pong with its payload."""

    payload: bytes


@attrs.frozen
class Pong:
    """A pong."""


@attrs.frozen
class Close:
    """A Close frame. `code` is 1005 if the frame has no code."""

    code: int
    reason: str


Event = Data | Ping | Pong | Close


class WebSocketReader(FrameDecoder):
    """Decodes what one peer sends. `client` is the role of this side."""

    def __init__(self, *, client: bool, max_message: int) -> None:
        super().__init__(client)
        self.max_message = max_message
        """Bytes of a message. A longer one is refused at the header of the frame
        that exceeds it.
        """
        self.size: int = 0
        """Bytes of the message so far, the frame that arrives included."""
        self.now = 0.0
        self._frames = 0  # of the message so far
        self._control = TokenBucket(CONTROL_BURST, CONTROL_RATE)
        self._empty = TokenBucket(EMPTY_BURST, EMPTY_RATE)

    @property
    def waiting(self) -> int:
        """Bytes that were fed and not decoded."""
        return len(self.buffer)

    def feed(self, data: bytes | bytearray, now: float) -> None:
        """Take received bytes."""
        self.now = now
        self.receive_bytes(bytes(data))

    def next_event(self) -> Event | None:
        """Return the next event, or None if more bytes are needed. Raises RuleBroken; after that
        the input cannot be decoded any more.
        """
        try:
            frame = self.process_buffer()
        except ParseFailed as error:
            raise RuleBroken(int(error.code), str(error)) from None
        if frame is None:
            return None
        # Only wsproto's message decoder makes texts, and it is not used here.
        payload = cast("bytes", frame.payload)
        if frame.opcode is Opcode.PING:
            return Ping(payload)
        if frame.opcode is Opcode.PONG:
            return Pong()
        if frame.opcode is Opcode.CLOSE:
            return _close(payload)
        ends = frame.frame_finished and frame.message_finished
        if ends:
            self.size = self._frames = 0
        return Data(payload, ends)

    def parse_header(self) -> bool:
        """Judge each header once, when all of it has arrived."""
        if not super().parse_header():
            return False
        header = cast("Header", self.header)  # wsproto has set it
        if header.opcode.iscontrol():
            if header.opcode is not Opcode.CLOSE and not self._control.spend(1, self.now):
                raise RuleBroken(
                    POLICY,
                    (
                        f"more than {CONTROL_BURST} pings and pongs at once, and {CONTROL_RATE:g} "
                        "a second"
                    ),
                )
        else:
            self._judge(header.opcode, header.payload_len)
        return True

    def _judge(self, opcode: Opcode, length: int) -> None:
        if opcode is Opcode.TEXT:
            raise RuleBroken(UNSUPPORTED, "a text message; messages are binary here")
        if (opcode is Opcode.CONTINUATION) is not bool(self._frames):
            raise RuleBroken(
                PROTOCOL_ERROR,
                "a message began inside another one"
                if self._frames
                else "a continuation of no message",
            )
        self._frames += 1
        self.size += length
        if self.size > self.max_message:
            raise RuleBroken(
                TOO_BIG, f"a message of {self.size} bytes or more; {self.max_message} are allowed"
            )
        if self._frames > MAX_FRAMES:
            raise RuleBroken(POLICY, f"a message of more than {MAX_FRAMES} frames")
        if not length and not self._empty.spend(1, self.now):
            raise RuleBroken(
                POLICY, f"more than {EMPTY_BURST} empty frames at once, and {EMPTY_RATE:g} a second"
            )


class WebSocketWriter:
    """Encodes what this side sends. A client masks; wsproto's mask costs 1.3 ms for each MiB, an
    XOR of two large integers 3 ms.
    """

    def __init__(self, *, client: bool) -> None:
        self._frames = FrameProtocol(client, [])

    def message(self, payload: bytes | bytearray | memoryview) -> bytearray:
        """Return a message of one frame."""
        return self._frames.send_data(payload)  # type: ignore[arg-type]  # it takes a memoryview, and checks for one

    def ping(self) -> bytearray:
        """Return a ping without a payload."""
        return self._frames.ping()

    def pong(self, payload: bytes) -> bytearray:
        """Return the answer to a ping."""
        return self._frames.pong(payload)

    def close(self, code: int, reason: str = "") -> bytearray:
        """Return a Close frame."""
        return self._frames.close(code, reason[:_MAX_REASON] or None)


def _close(payload: bytes) -> Close:
    if not payload:
        return Close(NO_CODE, "")
    if len(payload) < _CODE_SIZE:
        raise RuleBroken(PROTOCOL_ERROR, "a Close with half a code")
    code = int.from_bytes(payload[:_CODE_SIZE])
    if code not in _LEGAL_CODES and code not in _PRIVATE_CODES:
        raise RuleBroken(PROTOCOL_ERROR, f"a Close with the code {code}, which no peer may send")
    try:
        return Close(code, payload[_CODE_SIZE:].decode())
    except UnicodeDecodeError:
        raise RuleBroken(BAD_TEXT, "a Close with a reason that is not UTF-8") from None
