"""Tests of a server, frame by frame."""

from collections.abc import AsyncIterator
from dataclasses import replace
from itertools import count

import attrs
import penstock_rsocket as rsocket
import pytest
import trio
from _raw import SETUP, URL, connect_raw, raw_client, route
from penstock_rsocket import (
    Cancel,
    Error,
    ErrorCode,
    Ext,
    Keepalive,
    Payload,
    RequestChannel,
    RequestFnf,
    RequestN,
    RequestResponse,
    RequestStream,
    encode,
)
from trio.testing import MockClock as Clock

import penstock
from penstock.api import Limits, Request
from penstock.spi import PeerIdentity


def service_of() -> penstock.Service:
    service = penstock.Service()

    @service.publisher("count/{n}")
    async def count(n: int) -> AsyncIterator[bytes]:
        for number in range(n):
            yield b"%d" % number

    @service.publisher("large")
    async def large() -> AsyncIterator[bytes]:
        yield bytes(200_000)

    @service.publisher("fails")
    async def fails() -> AsyncIterator[bytes]:
        yield b"one"
        raise penstock.PublicError("out of numbers")

    @service.publisher("coded/{code}/{count}")
    async def coded(code: int, count: int) -> AsyncIterator[bytes]:
        for _ in range(count):
            yield bytes(100_000)
        raise penstock.PublicError("as the program says", code=code)

    @service.publisher("never/{code}")
    def never(code: int) -> list[bytes]:
        raise penstock.PublicError("as the program says", code=code)

    @service.request("reverse")
    async def reverse(payload: bytes) -> bytes:
        return payload[::-1]

    @service.request("now")
    async def now() -> bytes:
        return b"12:00"

    @service.request_response
    async def raw(data: bytes) -> bytes:
        return b"raw " + data

    return service


async def test_a_request_with_a_route_and_one_without(autojump_clock: Clock) -> None:
    """A route is the name, the data its payload; without a route the data is for a handler of
    data. Each answer has its end in the same frame.
    """
    async with raw_client(service_of()) as raw:
        await raw.send(
            RequestResponse(stream_id=1, metadata=route("reverse"), data=b"abc"),
            RequestResponse(stream_id=3, metadata=route("reverse")),
            RequestResponse(stream_id=5, metadata=route("now")),
            RequestResponse(stream_id=7, data=b"abc"),
            RequestResponse(stream_id=9, metadata=route("now"), data=b"too much"),
            RequestResponse(stream_id=11, metadata=route("nothing")),
        )
        found = [await raw.next() for _ in range(6)]
    assert {frame.stream_id: frame for frame in found} == {  # type: ignore[union-attr]  # all of them have an id
        1: Payload(stream_id=1, data=b"cba", complete=True),
        3: Payload(stream_id=3, data=b"", complete=True),
        5: Payload(stream_id=5, data=b"12:00", complete=True),
        7: Payload(stream_id=7, data=b"raw abc", complete=True),
        9: Error(
            stream_id=9,
            code=ErrorCode.APPLICATION_ERROR,
            data=b"now takes no payload, and one of 8 bytes was sent",
        ),
        11: Error(stream_id=11, code=ErrorCode.REJECTED, data=b"no such publisher"),
    }


@pytest.mark.parametrize(
    ("code", "sent"),
    [
        (ErrorCode.APPLICATION_ERROR, ErrorCode.APPLICATION_ERROR),
        (ErrorCode.REJECTED, ErrorCode.REJECTED),
        (ErrorCode.CANCELED, ErrorCode.CANCELED),
        (ErrorCode.INVALID, ErrorCode.INVALID),
        (0x301, 0x301),
        (0xFFFFFFFE, 0xFFFFFFFE),
        # Codes of connections, and reserved ones, are not sent on a stream.
        (ErrorCode.CONNECTION_ERROR, ErrorCode.APPLICATION_ERROR),
        (0x300, ErrorCode.APPLICATION_ERROR),
        (0xFFFFFFFF, ErrorCode.APPLICATION_ERROR),
    ],
)
async def test_a_program_gives_the_code_of_an_error(
    autojump_clock: Clock, code: int, sent: int
) -> None:
    """An error may come after elements, after a large one that waits, before the first, and when a
    stream is opened. Its text is sent unchanged.
    """
    expected = [sent, b"as the program says"]
    async with raw_client(service_of()) as raw:
        for stream_id, name in ((1, "coded/{}/0"), (3, "coded/{}/2"), (5, "never/{}")):
            await raw.send(
                RequestStream(stream_id=stream_id, demand=9, metadata=route(name.format(int(code))))
            )
            while not isinstance(answer := await raw.next(), Error):
                assert answer is not None
            assert [answer.code, answer.data] == expected
            assert answer.stream_id == stream_id


async def test_a_text_is_never_taken_for_a_code(autojump_clock: Clock) -> None:
    """The text of a handler, of a publisher, and of a function that makes one ends the stream with
    APPLICATION_ERROR, even if the text begins like a reason: REJECTED would promise that nothing
    was done.
    """
    service = penstock.Service()

    @service.request("asked")
    async def asked(payload: str) -> str:
        raise penstock.PublicError(payload)

    @service.publisher("published")
    async def published(payload: str) -> AsyncIterator[bytes]:
        raise penstock.PublicError(payload)
        yield b""

    @service.publisher("made")
    def made(payload: str) -> list[bytes]:
        raise penstock.PublicError(payload)

    @service.publisher("channel")
    def channel(elements: penstock.Source[bytes], request: Request) -> list[bytes]:
        raise penstock.PublicError(request.data.decode())

    words = (b"no such publisher", b"illegal demand", b"refused", b"draining", b"no lease")
    async with raw_client(service) as raw:
        ids = count(1, 2)
        for text in (*words, b"too long"):
            for frame in (
                RequestResponse(stream_id=next(ids), metadata=route("asked"), data=text),
                *(
                    RequestStream(stream_id=next(ids), demand=1, metadata=route(name), data=text)
                    for name in ("published", "made")
                ),
                RequestChannel(stream_id=next(ids), demand=1, metadata=route("channel"), data=text),
            ):
                await raw.send(frame)
                assert await raw.next() == Error(
                    stream_id=frame.stream_id, code=ErrorCode.APPLICATION_ERROR, data=text
                )


@pytest.mark.parametrize("text", ["version 2", "protocol:setup", "protocol:metadata", "no"])
async def test_the_words_of_a_setup_function_are_no_code(autojump_clock: Clock, text: str) -> None:
    """It refuses a SETUP that could be read, so each text gives REJECTED_SETUP."""

    def check(_data: bytes) -> bool:
        raise penstock.PublicError(text)

    async with raw_client(penstock.Service(setup=check)) as raw:
        assert await raw.all() == [
            Error(stream_id=0, code=ErrorCode.REJECTED_SETUP, data=text.encode())
        ]


async def test_a_stream_follows_its_demand(autojump_clock: Clock) -> None:
    """Elements as demand comes, one by one and many; then the end."""
    async with raw_client(service_of()) as raw:
        await raw.send(RequestStream(stream_id=1, demand=2, metadata=route("count/5")))
        assert [await raw.next(), await raw.next()] == [
            Payload(stream_id=1, data=b"0"),
            Payload(stream_id=1, data=b"1"),
        ]
        await raw.send(RequestResponse(stream_id=3, metadata=route("now")))
        assert await raw.next() == Payload(stream_id=3, data=b"12:00", complete=True)
        await raw.send(RequestN(stream_id=1, demand=1))
        assert await raw.next() == Payload(stream_id=1, data=b"2")
        await raw.send(RequestN(stream_id=1, demand=2**31 - 1), RequestN(stream_id=1, demand=7))
        assert [await raw.next() for _ in range(3)] == [
            Payload(stream_id=1, data=b"3"),
            Payload(stream_id=1, data=b"4"),
            Payload(stream_id=1, complete=True, next=False),
        ]


async def test_the_first_element_of_a_publisher_is_the_answer_to_a_request(
    autojump_clock: Clock,
) -> None:
    """Its end is in the same frame, and the rest is not read. A publisher without an element
    answers with the end alone.
    """
    async with raw_client(service_of()) as raw:
        await raw.send(
            RequestResponse(stream_id=1, metadata=route("count/5")),
            RequestResponse(stream_id=3, metadata=route("count/0")),
        )
        found = {frame.stream_id: frame for frame in [await raw.next(), await raw.next()]}  # type: ignore[union-attr]  # both are payloads
        assert found == {
            1: Payload(stream_id=1, data=b"0", complete=True),
            3: Payload(stream_id=3, complete=True, next=False),
        }


async def test_a_long_element_goes_in_fragments(autojump_clock: Clock) -> None:
    """Each but the last has the flag F, and all have N."""
    async with raw_client(service_of()) as raw:
        await raw.send(RequestStream(stream_id=1, demand=2, metadata=route("large")))
        sizes, follows = [], True
        while follows:
            part = await raw.next()
            assert isinstance(part, Payload)
            assert (part.stream_id, part.next, part.complete) == (1, True, False)
            sizes.append(len(part.data))
            follows = part.follows
        assert sum(sizes) == 200_000
        assert len(sizes) > 1
        assert await raw.next() == Payload(stream_id=1, complete=True, next=False)


@pytest.mark.parametrize("size", [1, 3, 50])
async def test_a_request_may_come_in_fragments(autojump_clock: Clock, size: int) -> None:
    """Pieces of the metadata come first, then those of the data; mixed with other requests."""
    content, data = route("reverse"), bytes(range(150)) * 10
    pieces: list[tuple[bytes | None, bytes]] = [
        (content[at : at + size * 10], b"") for at in range(0, len(content), size * 10)
    ]
    pieces += [(None, data[at : at + size * 100]) for at in range(0, len(data), size * 100)]
    frames: list[rsocket.Frame] = [
        RequestResponse(stream_id=1, metadata=pieces[0][0], data=b"", follows=True)
    ]
    for number, (meta, part) in enumerate(pieces[1:], 2):
        frames.append(Payload(stream_id=1, metadata=meta, data=part, follows=number < len(pieces)))
    frames.insert(2, RequestResponse(stream_id=3, metadata=route("now")))
    async with raw_client(service_of()) as raw:
        await raw.send(*frames)
        found = [await raw.next(), await raw.next()]
    assert {frame.stream_id: frame for frame in found} == {  # type: ignore[union-attr]  # payloads
        3: Payload(stream_id=3, data=b"12:00", complete=True),
        1: Payload(stream_id=1, data=data[::-1], complete=True),
    }


async def test_a_message_without_an_answer_may_come_in_fragments(autojump_clock: Clock) -> None:
    """Its route leads to a request of that name; without one it is for `fire_and_forget`."""
    service, got = penstock.Service(), list[tuple[str, bytes]]()

    @service.request("log/{level}")
    async def log(level: str, payload: bytes) -> bytes:
        got.append((level, payload))
        return b"nobody gets this"

    @service.fire_and_forget
    async def other(data: bytes) -> None:
        got.append(("", data))

    @service.request("done")
    async def done() -> bytes:
        return b""

    async with raw_client(service) as raw:
        await raw.send(
            RequestFnf(stream_id=1, metadata=route("log/info"), data=b"a"),
            RequestFnf(stream_id=3, metadata=route("log/debug"), data=b"b" * 100, follows=True),
            Payload(stream_id=3, data=b"c" * 100),
            RequestFnf(stream_id=5, data=b"d"),
            RequestFnf(stream_id=7, metadata=route("log"), data=b"dropped"),
            RequestResponse(stream_id=9, metadata=route("done")),
        )
        assert await raw.next() == Payload(stream_id=9, complete=True)
    assert got == [("info", b"a"), ("debug", b"b" * 100 + b"c" * 100), ("", b"d")]


async def test_fragments_beyond_the_bound_end_their_request(autojump_clock: Clock) -> None:
    """The peer may still send fragments of it."""
    limits = replace(Limits(), max_element=10_000)
    async with raw_client(service_of(), limits=limits) as raw:
        await raw.send(RequestResponse(stream_id=1, metadata=route("reverse"), follows=True))
        await raw.send(
            *(Payload(stream_id=1, data=bytes(4_000), follows=True) for _ in range(4)),
            Payload(stream_id=1, data=b"x" * 100),
            RequestResponse(stream_id=3, metadata=route("now")),
        )
        refused = await raw.next()
        assert isinstance(refused, Error)
        assert refused.stream_id == 1
        assert b"which is the most here" in refused.data
        assert await raw.next() == Payload(stream_id=3, data=b"12:00", complete=True)


async def test_a_cancel_ends_a_request_that_is_not_whole(autojump_clock: Clock) -> None:
    """And its place is free."""
    async with raw_client(service_of(), limits=replace(Limits(), max_subscriptions=1)) as raw:
        await raw.send(
            RequestResponse(stream_id=1, metadata=route("reverse"), follows=True),
            Cancel(stream_id=1),
            RequestResponse(stream_id=3, metadata=route("now")),
        )
        assert await raw.next() == Payload(stream_id=3, data=b"12:00", complete=True)


async def test_an_error_has_the_code_of_its_cause(autojump_clock: Clock) -> None:
    """The text of a PublicError crosses; a demand of 0 is INVALID."""
    async with raw_client(service_of()) as raw:
        await raw.send(RequestStream(stream_id=1, demand=9, metadata=route("fails")))
        assert await raw.next() == Payload(stream_id=1, data=b"one")
        assert await raw.next() == Error(
            stream_id=1, code=ErrorCode.APPLICATION_ERROR, data=b"out of numbers"
        )
        stream = RequestStream(stream_id=3, demand=1, metadata=route("count/9"))
        no_demand = bytearray(encode(stream))
        no_demand[9:13] = bytes(4)
        await raw.send_bytes(bytes(no_demand))
        assert await raw.next() == Error(
            stream_id=3, code=ErrorCode.INVALID, data=b"illegal demand"
        )


async def test_metadata_that_cannot_be_read_ends_its_request_alone(autojump_clock: Clock) -> None:
    """The connection goes on."""
    async with raw_client(service_of()) as raw:
        await raw.send(
            RequestResponse(stream_id=1, metadata=b"\xfe\0"),
            RequestResponse(stream_id=3, metadata=route("now")),
        )
        refused = await raw.next()
        assert isinstance(refused, Error)
        assert refused.data.startswith(b"the metadata of a request: ")
        assert await raw.next() == Payload(stream_id=3, data=b"12:00", complete=True)


async def test_frames_that_make_no_sense_are_ignored(autojump_clock: Clock) -> None:
    """An id in use, an id of the other side, unknown ids, a second SETUP, frames of a server."""
    async with raw_client(service_of()) as raw:
        await raw.send(
            RequestStream(stream_id=1, demand=1, metadata=route("count/1000")),
            RequestStream(stream_id=1, demand=1, metadata=route("count/1000")),
            RequestResponse(stream_id=2, metadata=route("now")),
            RequestResponse(stream_id=0, metadata=route("now")),
            Cancel(stream_id=77),
            Cancel(stream_id=0),
            RequestN(stream_id=77, demand=1),
            Error(stream_id=77, code=0x201),
            Payload(stream_id=77, complete=True, next=False),
            SETUP,
            rsocket.ResumeOk(received=0),
            rsocket.Lease(ttl=1, requests=1),
            rsocket.MetadataPush(metadata=b"m"),
            Ext(extended_type=1, ignore=True),
        )
        await raw.send_bytes(bytes.fromhex("000006 00000000 3e00"))
        await raw.send(RequestResponse(stream_id=3, metadata=route("now")))
        assert await raw.next() == Payload(stream_id=1, data=b"0")
        assert await raw.next() == Payload(stream_id=3, data=b"12:00", complete=True)


async def test_an_id_is_in_use_until_the_end_of_its_stream_was_sent(autojump_clock: Clock) -> None:
    """A request in one piece of bytes with another of its id is ignored; one after the answer is
    served.
    """
    request = RequestResponse(stream_id=1, metadata=route("now"))
    async with raw_client(service_of()) as raw:
        await raw.send(request, request, RequestResponse(stream_id=3, metadata=route("now")))
        assert await raw.next() == Payload(stream_id=1, data=b"12:00", complete=True)
        assert await raw.next() == Payload(stream_id=3, data=b"12:00", complete=True)
        await raw.send(request)
        assert await raw.next() == Payload(stream_id=1, data=b"12:00", complete=True)


@pytest.mark.parametrize("position", [5, 1 << 63])
async def test_a_position_means_nothing_if_the_connection_cannot_be_resumed(
    autojump_clock: Clock, position: int
) -> None:
    """A KEEPALIVE with a position that was never sent, or whose first bit is set, is answered."""
    async with raw_client(service_of()) as raw:
        body = position.to_bytes(8) + b"tick"
        await raw.send_bytes(bytes.fromhex("000012 00000000 0c80") + body)
        assert await raw.next(keepalives=True) == Keepalive(data=b"tick")


async def test_a_keepalive_is_echoed(autojump_clock: Clock) -> None:
    """With its data, and without the flag."""
    async with raw_client(service_of()) as raw:
        await raw.send(Keepalive(respond=True, data=b"tick"), Keepalive(data=b"no answer"))
        assert await raw.next(keepalives=True) == Keepalive(data=b"tick")
        await raw.send(RequestResponse(stream_id=3, metadata=route("now")))
        assert await raw.next(keepalives=True) == Payload(stream_id=3, data=b"12:00", complete=True)


@pytest.mark.parametrize(
    ("first", "code", "data"),
    [
        (attrs.evolve(SETUP, major=2), ErrorCode.INVALID_SETUP, b"version 1"),
        (attrs.evolve(SETUP, token=b"t"), ErrorCode.REJECTED_SETUP, b"protocol:resume"),
        (
            rsocket.Resume(token=b"t", received=0, first_kept=0),
            ErrorCode.REJECTED_RESUME,
            b"resume",
        ),
        (
            attrs.evolve(SETUP, metadata=b"\xfe\0"),
            ErrorCode.INVALID_SETUP,
            b"protocol:metadata",
        ),
    ],
)
async def test_a_client_that_is_not_let_in_gets_the_reason(
    autojump_clock: Clock, first: rsocket.Frame, code: int, data: bytes
) -> None:
    """As an ERROR on stream 0, and then the end."""
    async with raw_client(service_of(), first) as raw:
        assert await raw.all() == [Error(stream_id=0, code=code, data=data)]


@pytest.mark.parametrize(
    ("frame", "reason"),
    [
        (Ext(extended_type=5), b"protocol:extension 5"),
        (bytes.fromhex("000006 00000001 3c00"), b"protocol:type 0x0f"),
        (bytes.fromhex("000009 00000001 1100 ffffff"), b"protocol:metadata"),
        (bytes.fromhex("000005 00000001 11"), b"protocol:length 5"),
    ],
)
async def test_a_frame_that_cannot_be_read_ends_the_connection(
    autojump_clock: Clock, frame: rsocket.Frame | bytes, reason: bytes
) -> None:
    """With CONNECTION_ERROR."""
    async with raw_client(service_of()) as raw:
        await raw.send_bytes(frame if isinstance(frame, bytes) else encode(frame))
        last = (await raw.all())[-1]
        assert last == Error(stream_id=0, code=ErrorCode.CONNECTION_ERROR, data=reason)


async def test_a_frame_that_may_be_ignored_may_have_metadata_that_is_cut(
    autojump_clock: Clock,
) -> None:
    """The connection goes on. A request that loses a fragment with it is refused: it would be
    served with data that has a hole.
    """
    cut = bytes.fromhex("000009 00000001 2b80 0fffff")  # PAYLOAD with I, M and F
    async with raw_client(service_of()) as raw:
        await raw.send_bytes(cut + bytes.fromhex("000009 00000003 1300 0fffff"))
        await raw.send(RequestResponse(stream_id=1, metadata=route("reverse"), follows=True))
        await raw.send_bytes(cut)
        assert await raw.next() == Error(
            stream_id=1,
            code=ErrorCode.REJECTED,
            data=b"a frame was skipped, whose metadata ends after it",
        )
        await raw.send(RequestResponse(stream_id=5, metadata=route("now")))
        assert await raw.next() == Payload(stream_id=5, data=b"12:00", complete=True)


async def test_a_setup_must_be_understood(autojump_clock: Clock) -> None:
    """Also one with the flag I: its metadata is cut."""
    whole = bytearray(encode(attrs.evolve(SETUP, metadata=b"m")))
    whole[7] |= 0x02
    whole[-4:-1] = b"\x0f\xff\xff"
    async with trio.open_nursery() as nursery, penstock.serve(service_of(), URL):
        raw = await connect_raw(nursery)
        await raw.send_bytes(bytes(whole))
        assert await raw.all() == [
            Error(stream_id=0, code=ErrorCode.INVALID_SETUP, data=b"protocol:metadata")
        ]
        await raw.close()


@pytest.mark.parametrize(
    ("first", "reason"),
    [
        (bytes.fromhex("000008 00000000 0400 0001"), b"protocol:length 8"),
        (bytes.fromhex("000008 00000000 3400 0001"), b"protocol:length 8"),
        (bytes.fromhex("00001d 00000005 3400 0001 0000 0001 61") + bytes(16), b"protocol:setup"),
    ],
    ids=["a SETUP that is cut", "a RESUME that is cut", "a RESUME on a stream"],
)
async def test_a_first_frame_that_cannot_be_read_is_invalid(
    first: bytes, reason: bytes, autojump_clock: Clock
) -> None:
    """The code tells the client's author, and not its user, to act."""
    async with trio.open_nursery() as nursery, penstock.serve(service_of(), URL, resume=True):
        raw = await connect_raw(nursery)
        await raw.send_bytes(first)
        assert await raw.all() == [
            Error(stream_id=0, code=ErrorCode.INVALID_SETUP, data=reason),
        ]
        await raw.close()


@pytest.mark.parametrize("size", [32 << 10, (32 << 10) + 1])
async def test_the_data_of_a_keepalive_has_a_bound(size: int, autojump_clock: Clock) -> None:
    """It goes back: half of what may wait for the peer is the most."""
    async with raw_client(service_of()) as raw:
        await raw.send(Keepalive(respond=True, data=b"k" * size))
        if size > 32 << 10:
            reason = b"protocol:keepalive %d" % size
            assert await raw.all() == [
                Error(stream_id=0, code=ErrorCode.CONNECTION_ERROR, data=reason)
            ]
        else:
            assert await raw.next(keepalives=True) == Keepalive(data=b"k" * size)


@pytest.mark.parametrize("has_route", [True, False])
async def test_a_request_in_the_place_of_a_setup_is_not_served(
    autojump_clock: Clock, has_route: bool
) -> None:
    """With a route, and as the plain request that has a path of its own."""
    first = RequestResponse(stream_id=1, metadata=route("now") if has_route else None, data=b"x")
    async with raw_client(service_of(), first) as raw:
        assert await raw.all() == [
            Error(stream_id=0, code=ErrorCode.INVALID_SETUP, data=b"protocol:setup")
        ]


async def test_metadata_in_fragments_is_bounded(autojump_clock: Clock) -> None:
    """64 KiB of it are joined, and one byte more refuses its request alone."""
    service = penstock.Service()

    @service.request_response
    async def size(_data: bytes, request: Request) -> bytes:
        return b"%d" % len(request.metadata or b"")

    entry = rsocket.encode_composite([("a/type", bytes(65_536 - 10))])
    assert len(entry) == 65_536
    async with raw_client(service) as raw:
        for stream_id, extra in ((1, b""), (3, b"x")):
            await raw.send(
                RequestResponse(stream_id=stream_id, metadata=entry[:40_000], follows=True),
                Payload(stream_id=stream_id, metadata=entry[40_000:] + extra, follows=bool(extra)),
            )
        assert await raw.next() == Payload(stream_id=1, data=b"65536", complete=True)
        refused = await raw.next()
        assert isinstance(refused, Error)
        assert refused.code == ErrorCode.APPLICATION_ERROR
        assert refused.data.startswith(b"the metadata of this request has more than 65536 bytes")


@pytest.mark.parametrize("code", [1, 2, 3, 4])
async def test_only_a_client_may_be_refused(autojump_clock: Clock, code: int) -> None:
    """A server ignores an ERROR with a code that refuses a SETUP or a RESUME."""
    async with raw_client(service_of()) as raw:
        await raw.send(
            RequestStream(stream_id=1, demand=1, metadata=route("count/5")),
            Error(stream_id=0, code=code, data=b"no"),
            RequestN(stream_id=1, demand=1),
        )
        assert [await raw.next(), await raw.next()] == [
            Payload(stream_id=1, data=b"0"),
            Payload(stream_id=1, data=b"1"),
        ]


async def test_a_client_that_leaves_gets_the_rest_of_its_streams(autojump_clock: Clock) -> None:
    """After CONNECTION_CLOSE this side waits for the open streams, and for the bytes of their ends,
    and then leaves without a word. A second CONNECTION_CLOSE changes nothing.
    """
    going = Error(stream_id=0, code=ErrorCode.CONNECTION_CLOSE, data=b"going")
    async with raw_client(service_of()) as raw:
        await raw.send(
            RequestStream(stream_id=1, demand=1, metadata=route("count/3")),
            RequestResponse(stream_id=3, metadata=route("now")),
            going,
        )
        assert await raw.next() == Payload(stream_id=1, data=b"0")
        assert await raw.next() == Payload(stream_id=3, data=b"12:00", complete=True)
        await trio.sleep(5)
        await raw.send(going, RequestN(stream_id=1, demand=5))
        began_at = trio.current_time()
        assert await raw.all() == [
            Payload(stream_id=1, data=b"1"),
            Payload(stream_id=1, data=b"2"),
            Payload(stream_id=1, complete=True, next=False),
        ]
        assert trio.current_time() - began_at <= 1.1


async def test_a_client_without_a_stream_leaves_at_once(autojump_clock: Clock) -> None:
    """Nothing is left to wait for."""
    async with raw_client(service_of()) as raw:
        await raw.send(Error(stream_id=0, code=ErrorCode.CONNECTION_CLOSE, data=b"going"))
        began_at = trio.current_time()
        assert await raw.all() == []
        assert trio.current_time() - began_at < 1


async def test_a_server_that_leaves_an_open_stream_says_that_it_does(
    autojump_clock: Clock,
) -> None:
    """With CONNECTION_CLOSE it would promise to wait for the stream."""
    limits = replace(Limits(), keepalive=20.0, keepalive_timeout=20.0)
    async with raw_client(service_of(), limits=limits) as raw:
        await raw.send(RequestStream(stream_id=1, demand=1, metadata=route("count/3")))
        last = (await raw.all())[-1]
        assert last == Error(stream_id=0, code=ErrorCode.CONNECTION_ERROR, data=b"keepalive")


async def test_a_frame_above_the_limit_ends_its_stream_alone(autojump_clock: Clock) -> None:
    """A request is refused, and the connection goes on."""
    async with raw_client(service_of(), limits=replace(Limits(), max_frame=10_000)) as raw:
        await raw.send(
            RequestResponse(stream_id=1, metadata=route("reverse"), data=bytes(20_000)),
            RequestResponse(stream_id=3, metadata=route("now")),
        )
        assert await raw.next() == Error(stream_id=1, code=ErrorCode.REJECTED, data=b"too long")
        assert await raw.next() == Payload(stream_id=3, data=b"12:00", complete=True)


async def test_a_frame_above_the_limit_ends_a_channel_that_has_begun(
    autojump_clock: Clock,
) -> None:
    """Its function has run, so REJECTED would be a false promise."""
    service = penstock.Service()

    @service.publisher("deaf")
    async def deaf(elements: penstock.Source[bytes]) -> AsyncIterator[bytes]:
        yield b"one"
        await trio.sleep_forever()

    async with raw_client(service, limits=replace(Limits(), max_frame=10_000)) as raw:
        await raw.send(
            RequestChannel(stream_id=1, demand=5, metadata=route("deaf"), data=b"x"),
        )
        assert await raw.next() == Payload(stream_id=1, data=b"one")
        await raw.send(Payload(stream_id=1, data=bytes(20_000)))
        assert await raw.next() == Error(
            stream_id=1, code=ErrorCode.APPLICATION_ERROR, data=b"too long"
        )


async def test_credentials_are_examined(autojump_clock: Clock) -> None:
    """They come in the metadata of the SETUP."""

    def authenticate(scheme: str, data: bytes, peer: PeerIdentity) -> str | None:
        return "alice" if (scheme, data) == ("basic", b"alice:pw") else None

    service = penstock.Service(authenticate=authenticate)

    @service.request("who")
    async def who(peer: PeerIdentity) -> str:
        return str(peer.principal)

    simple = rsocket.encode_credentials(penstock.Credentials.basic("alice", "pw"))
    content = rsocket.encode_composite([(rsocket.AUTHENTICATION, simple)])
    async with raw_client(service, attrs.evolve(SETUP, metadata=content)) as raw:
        await raw.send(RequestResponse(stream_id=1, metadata=route("who")))
        assert await raw.next() == Payload(stream_id=1, data=b"alice", complete=True)
    async with raw_client(service, SETUP) as raw:
        assert await raw.all() == [Error(stream_id=0, code=ErrorCode.REJECTED_SETUP, data=b"auth")]


async def test_setup_data_is_examined(autojump_clock: Clock) -> None:
    """By `Service(setup=…)`."""

    def check(data: bytes) -> bool:
        return data == b"hi"

    service = penstock.Service(setup=check)

    @service.request("now")
    async def now() -> bytes:
        return b"12:00"

    async with raw_client(service, attrs.evolve(SETUP, data=b"hi")) as raw:
        await raw.send(RequestResponse(stream_id=1, metadata=route("now")))
        assert await raw.next() == Payload(stream_id=1, data=b"12:00", complete=True)
    async with raw_client(service, SETUP) as raw:
        refused = await raw.all()
        assert refused == [Error(stream_id=0, code=ErrorCode.REJECTED_SETUP, data=b"refused")]


async def test_a_silent_client_is_asked_and_then_left(autojump_clock: Clock) -> None:
    """After `Limits.keepalive` and `Limits.keepalive_timeout`."""
    limits = replace(Limits(), keepalive=20.0, keepalive_timeout=20.0)
    async with raw_client(service_of(), limits=limits) as raw:
        assert await raw.next(keepalives=True) == Keepalive(respond=True)
        last = await raw.next()
        assert last == Error(stream_id=0, code=ErrorCode.CONNECTION_CLOSE, data=b"keepalive")
        assert await raw.next() is None


async def test_a_port_for_all_protocols_finds_it(autojump_clock: Clock) -> None:
    """By the first bytes of the client."""
    async with penstock.serve(service_of(), "memory://tests"):
        for url in (URL, "memory://tests", "reactivesocket+memory://tests"):
            async with penstock.connect(url) as peer:
                assert await peer.request("now") == b"12:00"
