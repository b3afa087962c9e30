"""WebSocket: the frames of a client and of a server."""

from support import expect_equal, fuzz, instrumented, pieces_of

with instrumented():
    from penstock_websocket._frames import (
        Close,
        Data,
        Ping,
        Pong,
        RuleBroken,
        WebSocketReader,
        WebSocketWriter,
    )

MOST = 100


def _events(pieces: list[bytes], *, client: bool) -> tuple[list[object], int]:
    """Return the messages, pings, pongs and closes, and the code of the refusal; 0 without."""
    reader = WebSocketReader(client=client, max_message=MOST)
    events: list[object] = []
    message = b""
    try:
        for piece in pieces:
            reader.feed(piece, 0.0)
            while (event := reader.next_event()) is not None:
                if isinstance(event, Data):
                    # A payload comes as it arrives: its pieces are those of the input.
                    message += event.payload
                    assert len(message) <= MOST
                    if event.ends_message:
                        events.append(message)
                        message = b""
                    continue
                assert isinstance(event, Ping | Pong | Close)
                events.append(event)
    except RuleBroken as refusal:
        assert 1000 <= refusal.code < 5000
        return events, refusal.code
    return events, 0


def TestOneInput(data: bytes) -> None:
    """The first byte chooses the side, the second how the input is cut."""
    if len(data) < 2:
        return
    client, rest = bool(data[0] & 1), data[2:]
    whole = _events([rest], client=client)
    expect_equal(whole, _events(pieces_of(rest, data[1] or 1), client=client))


def _frames(writer: WebSocketWriter) -> list[bytes]:
    return [
        bytes(each)
        for each in (
            *(writer.message(b"abc"), writer.message(b"x" * 90), writer.message(b"")),
            *(writer.ping(), writer.pong(b"p"), writer.close(1000, "bye")),
        )
    ]


SEEDS = (
    *(b"\1\1" + each for each in _frames(WebSocketWriter(client=False))),
    *(b"\0\1" + each for each in _frames(WebSocketWriter(client=True))),
    b"\1\7" + b"".join(_frames(WebSocketWriter(client=False))),
    b"\1\1\x02\x01a\x80\x01b",
    b"\1\1\x82\x7e\x00\x40" + bytes(64),
    b"\1\1\x88\x03\x03\xe8\xff",
)

if __name__ == "__main__":
    fuzz(TestOneInput, SEEDS)
