"""The extension *requests*: golden bytes, strict version 0 without it, large payloads beside
other streams, and its accounts.
"""

from dataclasses import replace

import pytest
import trio
import trio.testing

from penstock.api import Limits, PublisherFailed, Rejected, UsageError
from penstock.extensions import Keepalive
from penstock.protocols.rsio import Requests
from penstock.runtime import Peer, Service, connect, serve
from tests.runtime._named import named_service
from tests.runtime._services import raw_connection

HELLO = bytes.fromhex("01000107")
SERVER_HELLO = bytes.fromhex("02000403060107")

GOLDEN = "4c 13 00 11 ff727100 0004 6563686f 7061796c6f6164"
"""A request by name on stream 0: "echo" with the payload "payload"."""

ANSWER = "20 00 00  21 00 07 7061796c6f6164  25 00"


@pytest.mark.parametrize(
    "messages",
    [
        GOLDEN,
        "4c 02 00 11  4d 12 00 ff727100 0004 6563686f 7061796c6f6164",
        "4c 07 00 11 ff72710000  4d 0d 00 04 6563686f 7061796c6f6164",
    ],
    ids=["whole", "all in a part", "cut"],
)
@pytest.mark.parametrize("cut", [False, True])
async def test_the_messages_are_those_of_the_reference(messages: str, cut: bool) -> None:
    """The answer is the same however the data is divided, and however the bytes are cut."""
    async with serve(named_service(), "memory://g"), trio.open_nursery() as nursery:
        raw = await raw_connection(nursery, "memory://g")
        data = HELLO + bytes.fromhex(messages)
        for piece in [data[at : at + 1] for at in range(len(data))] if cut else [data]:
            await raw.send(piece)
        heard, due = b"", SERVER_HELLO + bytes.fromhex(ANSWER)
        while len(heard) < len(due):
            heard += await raw.receive() or b""
        assert heard == due
        await raw.abort()


async def test_this_side_sends_the_messages_of_the_reference() -> None:
    """A short payload goes in one message; the data of a long one follows in parts."""
    long = Limits().split_outbound_at
    async with serve(named_service(), "memory://g") as server, trio.open_nursery() as nursery:
        raw = await raw_connection(nursery, "memory://g")
        await raw.send(HELLO)
        assert await raw.receive() == SERVER_HELLO
        (peer,) = server.peers
        nursery.start_soon(peer.request, "echo", b"payload")
        assert await raw.receive() == bytes.fromhex(GOLDEN)
        nursery.start_soon(peer.request, "echo", bytes(long))
        due = bytes.fromhex("4c 04 01 8a8001  4d 8b8001 01 ff727100 0004 6563686f") + bytes(long)
        heard = b""
        while len(heard) < len(due):
            heard += await raw.receive() or b""
        assert heard == due
        nursery.cancel_scope.cancel()
        await raw.abort()


@pytest.mark.parametrize("side", ["client", "server"])
async def test_without_the_extension_a_request_is_a_subscribe(side: str) -> None:
    """Strict version 0, on either side: names work, and a payload is refused here with advice."""
    client, serving = ((), None) if side == "client" else (None, ())
    service = named_service()
    async with (
        serve(service, "memory://s", extensions=serving) as server,
        connect(server.addresses[0], extensions=client) as peer,
    ):
        assert await peer.request("time") == b"12:00"
        assert await peer.request("numbers", type=str) == "0"
        for ask in (peer.request("echo", b"x"), peer.request_response(b"x")):
            with pytest.raises(UsageError, match="needs the extension 'requests' on both sides"):
                await ask


async def test_the_extension_can_be_given_by_hand() -> None:
    """Beside others, to both protocols; ReactiveSocket announces it and needs it not."""
    extensions = [Requests(), Keepalive()]
    async with serve(named_service(), "memory://s", extensions=extensions) as server:
        for protocol in ("rsio", "reactivesocket"):
            async with connect(f"{protocol}+{server.addresses[0]}", extensions=extensions) as peer:
                assert await peer.request("echo", b"x") == b"x"


async def test_raw_requests_work_over_rs_io_too() -> None:
    """The data may be anything, and may be a publisher's name, as on ReactiveSocket."""
    service = named_service()

    @service.request_response
    async def reverse(data: bytes) -> bytes:
        return data[::-1]

    async with serve(service, "memory://s") as server, connect(server.addresses[0]) as peer:
        assert await peer.request_response(b"abc") == b"cba"
        assert await peer.request_response("numbers", serializer="text") == "0"


@pytest.mark.parametrize("size", [16_383, 16_384, 65_536, 1_048_577, 4 << 20])
async def test_a_payload_of_any_length_arrives_whole(size: int) -> None:
    """A payload may have up to `Limits.max_element` bytes."""
    payload = bytes(range(256)) * (size // 256) + b"x" * (size % 256)
    async with serve(named_service(), "memory://s") as server, connect(server.addresses[0]) as peer:
        assert await peer.request("echo", payload) == payload


async def test_many_large_payloads_at_once_arrive() -> None:
    """More than may be unfinished at a time: the rest waits its turn."""
    service, limits, answers = (
        Service(),
        replace(Limits(), max_partials_in_all=3, partial_bytes=400_000),
        [],
    )

    @service.request("sum")
    async def total(payload: bytes) -> str:
        return str(sum(payload))

    async def ask(peer: Peer, number: int) -> None:
        answers.append(await peer.request("sum", bytes([number]) * 100_000, type=str))

    async with (
        serve(service, "memory://s", limits=limits) as server,
        connect(server.addresses[0], limits=limits) as peer,
    ):
        async with trio.open_nursery() as nursery:
            for number in range(12):
                nursery.start_soon(ask, peer, number)
        assert sorted(map(int, answers)) == [number * 100_000 for number in range(12)]


async def test_a_payload_above_the_limit_is_refused_here() -> None:
    """Before anything is sent."""
    limits = replace(Limits(), max_element=100_000, max_frame=50_000)
    async with serve(named_service(), "memory://s") as server:
        async with connect(server.addresses[0], limits=limits) as peer:
            with pytest.raises(
                UsageError, match=r"100001 bytes; 100000 is the most \(Limits.max_element\)"
            ):
                await peer.request("echo", bytes(100_001))
            with pytest.raises(
                UsageError, match="request data of 200000 bytes; 101040 is the most"
            ):
                await peer.request_response(bytes(200_000))
        async with connect(f"reactivesocket+{server.addresses[0]}", limits=limits) as peer:
            with pytest.raises(UsageError, match="request data of 50001 bytes; 50000 is the most"):
                await peer.request("echo", bytes(49_991))


async def test_a_payload_above_the_limit_of_the_peer_ends_its_request_alone() -> None:
    """The peer gets the length with the first message, and refuses before the bytes."""
    limits = replace(Limits(), max_element=100_000)
    async with (
        serve(named_service(), "memory://s", limits=limits) as server,
        connect(server.addresses[0]) as peer,
    ):
        with pytest.raises(
            Rejected, match="the data of this request has 200010 bytes; 101040 is the most here"
        ):
            await peer.request("echo", bytes(200_000))
        assert await peer.request("echo", b"x") == b"x"


async def test_a_cancel_while_the_payload_is_sent_ends_both_sides() -> None:
    """Nothing of it is held afterwards, here or there."""
    held: list[int] = []
    async with serve(named_service(), "memory://s") as server, connect(server.addresses[0]) as peer:
        await peer.wait_accepted()
        with trio.CancelScope() as scope:

            async def cancel() -> None:
                scope.cancel()

            async with trio.open_nursery() as nursery:
                nursery.start_soon(peer.request, "echo", bytes(4 << 20))
                nursery.start_soon(cancel)
        assert await peer.request("echo", b"x") == b"x"
        await trio.testing.wait_all_tasks_blocked()
        channel = peer._connection.session.channel
        held.append(channel.outbox.large)
        (served,) = server.peers
        held.append(served._connection.session.channel.request_bytes)
        held.append(served._connection.session.channel.budgets.partials.bytes)
        held.append(served._connection.session.channel.budgets.partials.count)
    assert held == [0, 0, 0, 0]


async def test_the_data_of_a_request_counts_until_its_end(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """For the memory budget, however the request ends: with an answer, an error, or a cancel."""
    service = named_service()

    @service.request("slow")
    async def slow(payload: bytes) -> bytes:
        await trio.sleep(payload[0])
        if payload[0] == 1:
            raise ValueError("a secret")
        return b"done"

    async with serve(service, "memory://s", on_violation=lambda _: None) as server:
        async with connect(server.addresses[0]) as peer, trio.open_nursery() as nursery:

            async def ask(seconds: int, size: int) -> None:
                with trio.move_on_after(3):
                    if seconds == 1:
                        with pytest.raises(PublisherFailed):
                            await peer.request("slow", bytes([seconds]) * size)
                    else:
                        await peer.request("slow", bytes([seconds]) * size)

            for seconds, size in ((1, 100), (2, 50_000), (9, 100_000)):
                nursery.start_soon(ask, seconds, size)
            counted = []
            for _ in range(4):
                await trio.sleep(0.9)
                (served,) = server.peers
                session = served._connection.session
                counted.append(session.channel.request_bytes)
                assert session.held() >= session.channel.request_bytes
    assert counted == [150_130, 150_020, 100_010, 0]


async def test_data_of_running_requests_is_bounded(autojump_clock: trio.testing.MockClock) -> None:
    """Above `Limits.partial_bytes` a request is refused, and the connection goes on."""
    service = Service()

    @service.request("slow")
    async def slow(payload: bytes) -> bytes:
        await trio.sleep(1)
        return b"done"

    limits = replace(Limits(), max_element=50_000, max_name=100, partial_bytes=120_000)
    answers: list[object] = []
    async with (
        serve(service, "memory://s", limits=limits) as server,
        connect(server.addresses[0]) as peer,
    ):
        async with trio.open_nursery() as nursery:

            async def ask() -> None:
                try:
                    answers.append(await peer.request("slow", bytes(40_000)))
                except Rejected as refused:
                    answers.append(str(refused))

            for _ in range(3):
                nursery.start_soon(ask)
        assert await peer.request("slow", bytes(40_000)) == b"done"
    assert sorted(map(str, answers))[:2] == ["b'done'", "b'done'"]
    assert "refused" in sorted(map(str, answers))[2]
