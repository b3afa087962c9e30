"""Resuming by RSocket's own frames: positions, both roles, cuts at each byte, tokens of other
clients.
"""

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import pairwise
from typing import Any

import attrs
import penstock_rsocket as rsocket
import pytest
import trio
import trio.testing
from _cutting import cutting, service_of
from _raw import SETUP, URL, Raw, connect_raw, raw_client, raw_listener, route
from hypothesis import given
from hypothesis import strategies as st
from penstock_rsocket import (
    Error,
    ErrorCode,
    Keepalive,
    Payload,
    RequestN,
    RequestResponse,
    RequestStream,
    Resume,
    ResumeOk,
    encode,
)
from penstock_rsocket._resume import ASK_BYTES, FrameCounter, RetainedFrames
from trio.testing import MockClock as Clock

import penstock
from penstock import ConnectionLost
from penstock.api import Limits, ProtocolError

LIMITS = replace(Limits(), resume_timeout=30.0)
TOKEN = b"0123456789abcdef"
RESUMABLE = attrs.evolve(SETUP, token=TOKEN)
CUTTING = "rsocket+cutting://tests"
REGISTRY, TRANSPORT = cutting()

FRAMES = st.sampled_from(
    [
        Payload(stream_id=1, data=b"x"),
        Payload(stream_id=3, data=b"y" * 100, complete=True),
        RequestN(stream_id=5, demand=7),
        Error(stream_id=1, code=0x301, data=b"no"),
        RequestResponse(stream_id=7),
        Keepalive(data=b"k"),
        rsocket.Lease(ttl=1, requests=1),
        rsocket.MetadataPush(metadata=b"m"),
    ]
)


def positions_of(frames: list[rsocket.Frame]) -> list[int]:
    """Return the position after each frame."""
    found, position = [0], 0
    for frame in frames:
        if getattr(frame, "stream_id", 0):
            position += len(encode(frame, framed=True))
        found.append(position)
    return found


def no_question() -> bytes:
    return b""


# --- positions


@given(st.lists(FRAMES, max_size=12), st.lists(st.integers(0, 600), max_size=12))
def test_the_frames_of_streams_are_counted_wherever_the_bytes_are_cut(
    frames: list[rsocket.Frame], cuts: list[int]
) -> None:
    """After each chunk the position is that of the last frame which is there as a whole."""
    pieces = [encode(frame) for frame in frames]
    data, counter, whole = b"".join(pieces), FrameCounter(framed=False), positions_of(frames)
    ends = [0]
    for piece in pieces:
        ends.append(ends[-1] + len(piece))
    places = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    for start, end in pairwise(places):
        counter.feed(data[start:end])
        assert counter.position == whole[sum(each <= end for each in ends) - 1]
    # The rest of a frame is sent again, as a whole.
    last = Payload(stream_id=1, data=b"abc")
    counter.feed(encode(last)[:5])
    counter.drop_incomplete()
    counter.feed(encode(last))
    assert counter.position == whole[-1] + 9


def test_messages_are_counted_without_a_length() -> None:
    """A transport that keeps their bounds brings one frame each; a broken one counts nothing."""
    counter = FrameCounter(framed=True)
    for frame in (Payload(stream_id=1, data=b"abc"), Keepalive()):
        counter.feed(encode(frame, framed=True))
    counter.feed(b"abc")
    assert counter.position == 9


@given(st.lists(FRAMES, min_size=1, max_size=12), st.lists(st.integers(1, 4)), st.data())
def test_what_the_peer_lacks_is_sent_again(
    frames: list[rsocket.Frame], sizes: list[int], data: st.DataObject
) -> None:
    """The counted frames after its position, in their order, from any two acknowledgements on."""
    retained, rest, left = RetainedFrames(1 << 20, 1 << 21, no_question), list(frames), list(sizes)
    while rest:
        count = left.pop() if left else len(rest)
        retained.add(bytearray().join(map(encode, rest[:count])))
        del rest[:count]
    positions = positions_of(frames)
    first = data.draw(st.sampled_from(positions))
    assert retained.acknowledge(first) == (first > 0)
    assert not retained.acknowledge(first)
    at = data.draw(st.sampled_from([each for each in positions if each >= first]))
    assert retained.sent == positions[-1]
    counted = [frame for frame in frames if getattr(frame, "stream_id", 0)]
    whole = positions_of(counted)
    again = [frame for frame, end in zip(counted, whole[1:], strict=True) if end > at]
    assert retained.take_back(at) == b"".join(map(encode, again))
    assert (retained.sent, retained.held) == (at, 0)


def test_a_position_within_a_frame_and_one_that_was_never_sent_are_faults() -> None:
    """Nothing is dropped then."""
    retained = RetainedFrames(1 << 20, 1 << 21, no_question)
    retained.add(bytearray(encode(Payload(stream_id=1, data=b"abc")) * 3))
    for position in (1, 10, 26, 28):
        with pytest.raises(ProtocolError) as caught:
            retained.acknowledge(position)
        assert caught.value.reason == f"protocol:resume {position}"
    assert (retained.acknowledged, retained.held) == (0, 36)


def test_the_peer_is_asked_once_for_its_position_until_it_answers() -> None:
    """Then again after as many bytes."""
    retained = RetainedFrames(1 << 20, 1 << 21, lambda: b"?")
    size = 64 << 10
    frame = encode(Payload(stream_id=1, data=bytes(size - 6)))
    sent = []
    for _ in range(12):
        data = bytearray(frame)
        retained.add(data)
        sent.append(bytes(data[len(frame) :]))
        if len(sent) == 8:
            retained.acknowledge(8 * size)
    asked = ASK_BYTES // size - 1
    assert [at for at, more in enumerate(sent) if more] == [asked, 8 + asked]


# --- both sides


async def read_all(peer: penstock.Peer, count: int, size: int = 0) -> list[bytes]:
    async with peer.subscribe(f"numbers/{count}/{size}", demand=3) as stream:
        return [each async for each in stream]


async def test_streams_requests_and_channels_go_on_in_both_directions(
    autojump_clock: Clock,
) -> None:
    """Each element comes once, however often the connection is cut."""
    expected = [b"%d" % number for number in range(60)]
    async with (
        penstock.serve(service_of(), URL, limits=LIMITS, resume=True) as server,
        penstock.connect(URL, limits=LIMITS, resume=True, service=service_of()) as peer,
    ):
        await peer.wait_accepted()
        (back,) = server.peers
        async with (
            peer.subscribe("numbers/60/0", demand=2) as down,
            back.subscribe("numbers/60/0", demand=2) as up,
            peer.request_channel(expected, name="echo", demand=3) as echoed,
        ):
            read: list[list[bytes]] = [[], [], []]
            for _ in range(5):
                for elements, stream in zip(read, (down, up, echoed), strict=True):
                    elements += [await anext(stream) for _ in range(5)]
                await peer._connection.connection.abort()  # type: ignore[attr-defined]  # as a network does it
            for elements, stream in zip(read, (down, up, echoed), strict=True):
                elements += [each async for each in stream]
        assert read == [expected] * 3
        assert await peer.request("reverse", b"abc") == b"cba"
        assert peer.statistics().resumed == back.statistics().resumed == 5
        # What both sides have not acknowledged, and no more.
        assert 0 < peer.statistics().retained_bytes < 10_000


async def run_with_cuts(cuts: list[tuple[int, int]], *, size: int = 0) -> int:
    """Read a stream, a request and a channel over connections that are cut. Return how many
    connections it took.
    """
    TRANSPORT.cuts, TRANSPORT.made = list(cuts), 0
    expected = [b"%d" % number + bytes(size) for number in range(8)]
    found: list[Any] = []
    async with (
        penstock.serve(service_of(), URL, limits=LIMITS, resume=True, registry=REGISTRY),
        penstock.connect(CUTTING, limits=LIMITS, resume=True, registry=REGISTRY) as peer,
    ):
        with trio.fail_after(25):
            async with peer.request_channel(expected, name="echo", demand=2) as echoed:
                found = [
                    await read_all(peer, 8, size),
                    [each async for each in echoed],
                    await peer.request("reverse", b"abc"),
                ]
    assert found == [expected, expected, b"cba"]
    return TRANSPORT.made


@pytest.mark.parametrize("direction", ["sent", "received"])
async def test_a_cut_at_each_byte_costs_no_element_and_repeats_none(
    autojump_clock: Clock, direction: str
) -> None:
    """After the SETUP was accepted, because before that there is nothing to go on with."""
    setup = attrs.evolve(SETUP, token=bytes(64))
    at = (
        len(encode(setup) + encode(Keepalive()))
        if direction == "sent"
        else len(encode(Keepalive()))
    )
    begun = at
    # Until a cut comes after the last byte.
    while await run_with_cuts([(at, -1) if direction == "sent" else (-1, at)]) > 1:
        at += 1
    assert at - begun > 100


async def test_random_cuts_cost_no_element_and_repeat_none(autojump_clock: Clock) -> None:
    """Several in a row, also within the frames that resume, and with fragments."""
    chosen = random.Random(20)
    for _ in range(150):
        first = (-1, chosen.randrange(20, 400))
        more = [
            chosen.choice([(-1, chosen.randrange(600)), (chosen.randrange(600), -1)])
            for _ in range(chosen.randrange(6))
        ]
        await run_with_cuts([first, *more])
    for _ in range(10):
        first = (-1, chosen.randrange(20, 400_000))
        more = [(-1, chosen.randrange(400_000)) for _ in range(chosen.randrange(4))]
        await run_with_cuts([first, *more], size=100_000)


async def test_more_than_may_be_kept_goes_on_when_the_peer_acknowledges(
    autojump_clock: Clock,
) -> None:
    """A publisher waits at `Limits.resume_bytes`, and the question for the position ends that."""
    limits = replace(LIMITS, resume_bytes=1 << 19)
    async with (
        penstock.serve(service_of(), URL, limits=limits, resume=True),
        penstock.connect(URL, limits=limits, resume=True) as peer,
    ):
        began = trio.current_time()
        async with peer.subscribe("numbers/300/10000") as stream:
            count = 0
            async for _ in stream:
                count += 1
        assert count == 300
        assert trio.current_time() - began < 1  # and not an interval of KEEPALIVE frames


# --- a server, frame by frame


@asynccontextmanager
async def served(**options: Any) -> AsyncIterator[tuple[penstock.Server, trio.Nursery]]:
    async with trio.open_nursery() as nursery:
        async with penstock.serve(
            service_of(), URL, **{"limits": LIMITS, "resume": True, **options}
        ) as server:
            with trio.fail_after(200):
                yield server, nursery
        nursery.cancel_scope.cancel()


async def test_a_client_goes_on_with_its_token_where_it_was(autojump_clock: Clock) -> None:
    """RESUME_OK has the position of the server, and the frames that the client lacks follow at
    once. The token stays good.
    """
    asked = RequestStream(stream_id=1, demand=3, metadata=route("numbers/9/0"))
    element = len(encode(Payload(stream_id=1, data=b"0"), framed=True))
    position = len(encode(asked, framed=True))
    async with served() as (_, nursery):
        raw = await connect_raw(nursery, RESUMABLE, asked)
        assert [await raw.next() for _ in range(3)] == [
            Payload(stream_id=1, data=b"%d" % number) for number in range(3)
        ]
        for received, demand in ((1, 2), (2, 1)):
            await raw.close()
            raw = await connect_raw(
                nursery, Resume(token=TOKEN, received=received * element, first_kept=0)
            )
            assert await raw.next() == ResumeOk(received=position)
            assert [await raw.next() for _ in range(demand)] == [
                Payload(stream_id=1, data=b"%d" % number) for number in range(received, 3)
            ]
        more = RequestN(stream_id=1, demand=1)
        await raw.send(Keepalive(respond=True, position=3 * element), more)
        while not isinstance(frame := await raw.next(keepalives=True), Payload):
            assert isinstance(frame, Keepalive)
            assert frame.position in (position, position + len(encode(more, framed=True)))
        assert frame == Payload(stream_id=1, data=b"3")
        await raw.close()


@pytest.mark.parametrize(
    ("question", "reason"),
    [
        (Resume(token=b"f" * 16, received=0, first_kept=0), b"resume"),
        (Resume(token=b"", received=0, first_kept=0), b"resume"),
        (Resume(major=2, token=TOKEN, received=0, first_kept=0), b"resume"),
        # The server has got nothing, so what the client cannot send again is lost.
        (Resume(token=TOKEN, received=0, first_kept=9), b"resume"),
        # The server has sent nothing.
        (Resume(token=TOKEN, received=9, first_kept=0), b"resume"),
    ],
)
async def test_a_question_that_does_not_fit_is_rejected(
    autojump_clock: Clock, question: Resume, reason: bytes
) -> None:
    """With the code that tells the client not to try again."""
    async with served() as (_, nursery):
        lost = await connect_raw(nursery, RESUMABLE)
        await lost.send(Keepalive(respond=True))
        await lost.next(keepalives=True)
        await lost.close()
        raw = await connect_raw(nursery, question)
        assert await raw.all() == [Error(stream_id=0, code=ErrorCode.REJECTED_RESUME, data=reason)]


async def test_a_position_within_a_frame_is_rejected(autojump_clock: Clock) -> None:
    """It is no end of a frame that the server has sent: the client has counted wrongly."""
    async with served() as (_, nursery):
        asked = RequestStream(stream_id=1, demand=1, metadata=route("numbers/9/0"))
        lost = await connect_raw(nursery, RESUMABLE, asked)
        assert await lost.next() == Payload(stream_id=1, data=b"0")
        await lost.close()
        raw = await connect_raw(nursery, Resume(token=TOKEN, received=3, first_kept=0))
        assert await raw.all() == [
            Error(stream_id=0, code=ErrorCode.REJECTED_RESUME, data=b"resume")
        ]


async def test_a_version_the_wrong_way_round_is_that_of_rsocket_js(autojump_clock: Clock) -> None:
    """rsocket-js 1.0.0-alpha.3 writes 0.1 into its RESUME for 1.0: it goes on."""
    question = Resume(major=0, minor=1, token=TOKEN, received=0, first_kept=0)
    async with served() as (_, nursery):
        lost = await connect_raw(nursery, RESUMABLE)
        await lost.send(Keepalive(respond=True))
        await lost.next(keepalives=True)
        await lost.close()
        raw = await connect_raw(nursery, question)
        assert await raw.next() == ResumeOk(received=0)
        await raw.close()


async def test_a_server_without_resume_rejects_both_frames(autojump_clock: Clock) -> None:
    """The SETUP with a token, and the RESUME, each with its code."""
    async with served(resume=False) as (_, nursery):
        raw = await connect_raw(nursery, RESUMABLE)
        assert await raw.all() == [
            Error(stream_id=0, code=ErrorCode.REJECTED_SETUP, data=b"protocol:resume")
        ]
        raw = await connect_raw(nursery, Resume(token=TOKEN, received=0, first_kept=0))
        assert await raw.all() == [
            Error(stream_id=0, code=ErrorCode.REJECTED_RESUME, data=b"resume")
        ]


async def test_a_token_that_is_short_or_in_use_is_refused(autojump_clock: Clock) -> None:
    """A client cannot take the place of another one by a SETUP with its token."""
    async with served() as (_, nursery):
        first = await connect_raw(nursery, RESUMABLE)
        await first.send(RequestResponse(stream_id=1, metadata=route("reverse"), data=b"ab"))
        assert await first.next() == Payload(stream_id=1, data=b"ba", complete=True)
        for token in (TOKEN, b"short", b""):
            raw = await connect_raw(nursery, attrs.evolve(SETUP, token=token))
            assert await raw.all() == [
                Error(stream_id=0, code=ErrorCode.REJECTED_SETUP, data=b"protocol:resume")
            ]
        await first.send(RequestResponse(stream_id=3, metadata=route("reverse"), data=b"cd"))
        assert await first.next() == Payload(stream_id=3, data=b"dc", complete=True)
        await first.close()


async def test_a_client_may_be_back_before_the_loss_is_noticed(autojump_clock: Clock) -> None:
    """Then the transport that the server still has is ended."""
    async with served() as (server, nursery):
        first = await connect_raw(nursery, RESUMABLE)
        await first.send(RequestResponse(stream_id=1, metadata=route("reverse"), data=b"ab"))
        answer = await first.next()
        assert answer is not None
        second = await connect_raw(
            nursery,
            Resume(token=TOKEN, received=len(encode(answer, framed=True)), first_kept=0),
        )
        assert isinstance(await second.next(), ResumeOk)
        assert await first.next() is None
        await trio.testing.wait_all_tasks_blocked()
        assert server.statistics().resumed == 1
        await second.close()


async def test_guesses_of_tokens_find_nothing_and_cost_nothing(autojump_clock: Clock) -> None:
    """Each is refused in the same words, in the time of any other, and the victim goes on."""
    async with served() as (server, nursery):
        victim = await connect_raw(nursery, RESUMABLE, Keepalive(respond=True))
        await victim.next(keepalives=True)
        await victim.close()
        await trio.testing.wait_all_tasks_blocked()
        began = trio.current_time()
        for guess in range(100):
            raw = await connect_raw(
                nursery,
                Resume(token=TOKEN[:-1] + bytes([guess]), received=0, first_kept=0),
            )
            assert await raw.all() == [
                Error(stream_id=0, code=ErrorCode.REJECTED_RESUME, data=b"resume")
            ]
        assert trio.current_time() == began
        assert sum(server.statistics().connections.values()) == 1
        victim = await connect_raw(nursery, Resume(token=TOKEN, received=0, first_kept=0))
        assert await victim.next() == ResumeOk(received=0)
        await victim.close()


async def test_a_client_that_sends_before_the_answer_is_refused(autojump_clock: Clock) -> None:
    """Its bytes would have to be kept while the lost connection is looked for."""
    async with served() as (_, nursery):
        lost = await connect_raw(nursery, RESUMABLE, Keepalive(respond=True))
        await lost.next(keepalives=True)
        await lost.close()
        question = Resume(token=TOKEN, received=0, first_kept=0)
        early = RequestResponse(stream_id=1, data=b"x")
        raw = await connect_raw(nursery, question, early)
        assert await raw.all() == [
            Error(stream_id=0, code=ErrorCode.REJECTED_RESUME, data=b"protocol:resume")
        ]


async def test_a_resume_after_the_first_frame_ends_the_connection(autojump_clock: Clock) -> None:
    """With CONNECTION_ERROR, as the specification asks."""
    async with raw_client(service_of()) as raw:
        await raw.send(
            RequestResponse(stream_id=1, metadata=route("reverse"), data=b"ab"),
            Resume(token=TOKEN, received=0, first_kept=0),
        )
        *_, last = await raw.all()
    assert last == Error(stream_id=0, code=ErrorCode.CONNECTION_ERROR, data=b"protocol:resume")


async def test_a_keepalive_with_a_position_that_was_never_sent_ends_the_connection(
    autojump_clock: Clock,
) -> None:
    """The peer counts otherwise, so nothing could be sent again."""
    async with served() as (_, nursery):
        raw = await connect_raw(nursery, RESUMABLE, Keepalive(position=5))
        *_, last = await raw.all()
    assert last == Error(stream_id=0, code=ErrorCode.CONNECTION_ERROR, data=b"protocol:resume 5")


async def test_a_position_whose_first_bit_is_set_is_refused(autojump_clock: Clock) -> None:
    """In a KEEPALIVE it ends the connection, in a RESUME the answer is REJECTED_RESUME."""
    position = bytes.fromhex("8000000000000000")
    body = bytes.fromhex("00010000") + len(TOKEN).to_bytes(2) + TOKEN + bytes(8) + position
    keepalive = bytes.fromhex("00000e 00000000 0c00") + position
    resume = (6 + len(body)).to_bytes(3) + bytes.fromhex("00000000 3400") + body
    async with served() as (_, nursery):
        raw = await connect_raw(nursery, RESUMABLE)
        await raw.send_bytes(keepalive)
        assert (await raw.all())[-1] == Error(
            stream_id=0, code=ErrorCode.CONNECTION_ERROR, data=b"protocol:position"
        )
        raw = await connect_raw(nursery)
        await raw.send_bytes(resume)
        assert (await raw.all())[-1] == Error(
            stream_id=0, code=ErrorCode.REJECTED_RESUME, data=b"protocol:position"
        )


async def test_a_lost_connection_is_forgotten_after_its_time(autojump_clock: Clock) -> None:
    """Its token leads nowhere then."""
    async with served() as (server, nursery):
        raw = await connect_raw(nursery, RESUMABLE, Keepalive(respond=True))
        await raw.next(keepalives=True)
        await raw.close()
        await trio.sleep(LIMITS.resume_timeout + 1)
        assert not server.peers
        raw = await connect_raw(nursery, Resume(token=TOKEN, received=0, first_kept=0))
        assert await raw.all() == [
            Error(stream_id=0, code=ErrorCode.REJECTED_RESUME, data=b"resume")
        ]


async def test_the_connection_that_was_lost_first_gives_way_to_a_living_client(
    autojump_clock: Clock,
) -> None:
    """As over RS.io. A client that is back needs no second place."""
    async with served(limits=replace(LIMITS, max_connections=3)) as (server, nursery):
        tokens = [bytes([65 + number]) * 16 for number in range(3)]
        for token in tokens:
            lost = await connect_raw(
                nursery, attrs.evolve(SETUP, token=token), Keepalive(respond=True)
            )
            await lost.next(keepalives=True)
            await lost.close()
            await trio.testing.wait_all_tasks_blocked()
        assert server.statistics().suspended == 3
        living = await connect_raw(nursery, SETUP, Keepalive(respond=True))
        await living.next(keepalives=True)
        assert server.statistics().suspended == 2
        early = await connect_raw(nursery, Resume(token=tokens[0], received=0, first_kept=0))
        assert await early.all() == [
            Error(stream_id=0, code=ErrorCode.REJECTED_RESUME, data=b"resume")
        ]
        late = await connect_raw(nursery, Resume(token=tokens[2], received=0, first_kept=0))
        assert await late.next() == ResumeOk(received=0)
        await trio.testing.wait_all_tasks_blocked()
        assert (server.statistics().suspended, server.statistics().resumed) == (1, 1)
        await living.close()
        await late.close()


async def test_a_lease_does_not_survive(autojump_clock: Clock) -> None:
    """The server grants another one on the next link."""
    async with served() as (_, nursery):
        raw = await connect_raw(nursery, attrs.evolve(RESUMABLE, leases=True))
        assert isinstance(await raw.next(), rsocket.Lease)
        await raw.close()
        began = trio.current_time()
        raw = await connect_raw(nursery, Resume(token=TOKEN, received=0, first_kept=0))
        assert isinstance(await raw.next(), ResumeOk)
        assert isinstance(await raw.next(), rsocket.Lease)
        assert trio.current_time() == began
        await raw.close()


# --- a client, frame by frame


@asynccontextmanager
async def client_of_raw() -> AsyncIterator[tuple[penstock.Peer, Raw, Any, bytes]]:
    """Connect a client that resumes. Return the first connection and the token too."""
    async with (
        raw_listener() as (_, listener),
        penstock.connect(URL, limits=LIMITS, resume=True) as peer,
    ):
        raw = Raw(await listener.accept())
        setup = await raw.next()
        assert isinstance(setup, rsocket.Setup)
        assert setup.token is not None
        assert len(setup.token) >= 32
        await raw.next(keepalives=True)
        await raw.send(Keepalive())
        yield peer, raw, listener, setup.token


async def test_a_client_asks_with_its_positions_and_takes_what_follows_the_answer(
    autojump_clock: Clock,
) -> None:
    """Elements may come in the same chunk as RESUME_OK. The client sends again the frames that the
    server lacks.
    """
    async with client_of_raw() as (peer, first, listener, token):
        async with peer.subscribe("a", demand=3) as stream:
            asked = await first.next()
            assert asked == RequestStream(stream_id=1, demand=3, metadata=route("a"))
            await first.send(Payload(stream_id=1, data=b"1"))
            assert await anext(stream) == b"1"
            await first.send_bytes(encode(Payload(stream_id=1, data=b"2"))[:7])
            await first.close()
            raw = Raw(await listener.accept())
            assert await raw.next() == Resume(token=token, received=7, first_kept=0)
            await raw.send(
                ResumeOk(received=0),
                Payload(stream_id=1, data=b"2"),
                Payload(stream_id=1, data=b"3", complete=True),
            )
            assert [each async for each in stream] == [b"2", b"3"]
            assert await raw.next() == asked
            await raw.close()
            raw = Raw(await listener.accept())
            assert await raw.next() == Resume(token=token, received=21, first_kept=0)
            await raw.send(ResumeOk(received=len(encode(asked, framed=True))))
            assert await raw.next(keepalives=True) == Keepalive(respond=True, position=21)
            await raw.close()


@pytest.mark.parametrize(
    "answer",
    [
        Error(stream_id=0, code=ErrorCode.REJECTED_RESUME, data=b"no"),
        ResumeOk(received=1 << 40),
        Keepalive(),
        Payload(stream_id=1, data=b"1"),
        ResumeOk(received=5),
    ],
    ids=["rejected", "a position never sent", "keepalive", "payload", "within a frame"],
)
async def test_a_client_gives_up_if_it_cannot_go_on(
    autojump_clock: Clock, answer: rsocket.Frame
) -> None:
    """The streams get ConnectionLost, which says so."""
    async with client_of_raw() as (peer, first, listener, _), peer.subscribe("a") as stream:
        await first.next()
        await first.close()
        raw = Raw(await listener.accept())
        assert isinstance(await raw.next(), Resume)
        await raw.send(answer)
        with pytest.raises(ConnectionLost) as caught:
            await anext(stream)
        assert caught.value.resumable is False
        await raw.close()


async def test_a_client_tries_again_after_an_error_that_may_pass(autojump_clock: Clock) -> None:
    """Any code but REJECTED_RESUME, a lost answer, and a server that is silent."""
    async with client_of_raw() as (peer, first, listener, token):
        async with peer.subscribe("a", demand=3) as stream:
            asked = await first.next()
            await first.close()
            for answer in (
                encode(Error(stream_id=0, code=ErrorCode.CONNECTION_ERROR, data=b"busy")),
                encode(Error(stream_id=0, code=ErrorCode.REJECTED_SETUP, data=b"full")),
                encode(ResumeOk(received=0))[:6],
            ):
                raw = Raw(await listener.accept())
                assert await raw.next() == Resume(token=token, received=0, first_kept=0)
                await raw.send_bytes(answer)
                await raw.close()
            raw = Raw(await listener.accept())
            assert await raw.next() == Resume(token=token, received=0, first_kept=0)
            await raw.send(ResumeOk(received=0))
            assert await raw.next() == asked
            await raw.send(Payload(stream_id=1, data=b"1", complete=True))
            assert [each async for each in stream] == [b"1"]
            await raw.close()
