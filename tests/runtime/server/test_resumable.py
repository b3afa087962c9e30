"""A server keeps connections that can be resumed: tokens, counts, the time, and hostile clients."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
import trio
import trio.testing

from penstock.api import ConnectionLost, Credentials, UsageError
from penstock.protocols import rsio
from penstock.runtime import Service, connect, serve
from penstock.transports._memory_pipe import MemoryStream
from tests.runtime._resuming import (
    ACKNOWLEDGE,
    ANSWER,
    ASK,
    LIMITS,
    RESUMING,
    TOKEN,
    URL,
    body_of,
    cut,
    numbers_service,
    raw_clients,
)

SUBSCRIBE = rsio.Subscribe(publisher="numbers", subscriber=0, demand=2)


async def test_a_client_goes_on_with_its_token_where_it_was(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """The server sends from the byte that the client has not received, and counts on from the
    bytes that it has received itself.
    """
    async with (
        serve(numbers_service(), URL, limits=LIMITS, resume=True) as server,
        raw_clients() as raw,
    ):
        first = await raw()
        token = await first.begin(SUBSCRIBE)
        assert first.received > 0
        await first.connection.abort()
        await trio.testing.wait_all_tasks_blocked()
        assert server.statistics().suspended == 1
        second = await raw()
        # It says that the last 5 bytes have not come: they are the end of the second element.
        answer = body_of(await second.ask(token, first.received - 5), ANSWER)
        assert int.from_bytes(answer[32:]) == first.sent
        assert answer[:32] != token
        second.messages.streams.update(first.messages.streams)
        second.received = 0
        await second.send(rsio.Request(subscriber=0, demand=1))
        assert await second.connection.receive() is not None
        assert server.statistics().resumed == 1
        assert server.statistics().suspended == 0


@pytest.mark.parametrize("seconds", [LIMITS.resume_timeout - 1, LIMITS.resume_timeout + 1])
async def test_a_connection_is_kept_for_its_time(
    autojump_clock: trio.testing.MockClock, seconds: float
) -> None:
    """After that its streams are cancelled, its place is free,
    and the token is good for nothing.
    """
    ended: list[float] = []
    service = numbers_service(on_end=lambda: ended.append(trio.current_time()))
    async with serve(service, URL, limits=LIMITS, resume=True) as server, raw_clients() as raw:
        first = await raw()
        token = await first.begin(SUBSCRIBE)
        await first.connection.abort()
        began = trio.current_time()
        await trio.sleep(seconds)
        is_late = seconds > LIMITS.resume_timeout
        assert [time - began for time in ended] == pytest.approx(
            [LIMITS.resume_timeout] if is_late else []
        )
        assert len(server.peers) == (0 if is_late else 1)
        second = await raw()
        *_, last = await second.ask(token, first.received)
        assert (
            last == rsio.Goodbye(reason="resume")
            if is_late
            else isinstance(last, rsio.ExtensionMessage)
        )


async def test_bytes_that_come_right_behind_the_answer_belong_to_the_lost_connection(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The transport may have sent the answer some passes of the loop before its `send` returns, as
    that of WebSocket does.
    """
    original = MemoryStream.send_all

    async def send(self: MemoryStream, data: Any) -> None:
        await original(self, data)
        for _ in range(50 if bytes(data[:1]) == bytes([ANSWER]) else 0):
            await trio.lowlevel.checkpoint()

    monkeypatch.setattr(MemoryStream, "send_all", send)
    async with serve(numbers_service(), URL, limits=LIMITS, resume=True), raw_clients() as raw:
        first = await raw()
        token = await first.begin()
        await first.connection.abort()
        second = await raw()
        await second.send(rsio.ClientHello(extensions=(RESUMING,)))
        await second.read()
        await second.send(rsio.ExtensionMessage(type=ASK, body=token + first.received.to_bytes(8)))
        assert await second.connection.receive() is not None
        await second.send(SUBSCRIBE)
        assert rsio.OnSubscribe(subscriber=0) in await second.read()


async def test_a_token_has_one_use(autojump_clock: trio.testing.MockClock) -> None:
    """Once the client has sent something behind the answer, the token that it used is refused;
    the next one is good.
    """
    async with serve(numbers_service(), URL, limits=LIMITS, resume=True), raw_clients() as raw:
        first = await raw()
        old = await first.begin()
        await first.connection.abort()
        second = await raw()
        following = body_of(await second.ask(old, first.received), ANSWER)[:32]
        await second.send(SUBSCRIBE)
        await second.read()
        third = await raw()
        assert (await third.ask(old, first.received))[-1] == rsio.Goodbye(reason="resume")
        assert not second.is_over
        fourth = await raw()
        assert body_of(await fourth.ask(following, first.received), ANSWER)


async def test_a_token_is_good_again_if_its_answer_was_lost(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """The client does not know the next one then. Each answer has another."""
    async with serve(numbers_service(), URL, limits=LIMITS, resume=True), raw_clients() as raw:
        first = await raw()
        token = await first.begin()
        await first.connection.abort()
        answers = []
        for _ in range(12):
            client = await raw()
            answers.append(body_of(await client.ask(token, first.received), ANSWER)[:32])
            await client.connection.abort()
        assert len({token, *answers}) == 13
        last = await raw()
        assert body_of(await last.ask(answers[-1], first.received), ANSWER)
        # The oldest of the tokens that were given meanwhile is forgotten: their number is bounded.
        other = await raw()
        assert (await other.ask(answers[0], first.received))[-1] == rsio.Goodbye(reason="resume")


async def test_of_two_clients_with_one_token_the_later_one_goes_on(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """The transport of the other is ended, and no byte of the connection goes there."""
    async with (
        serve(numbers_service(), URL, limits=LIMITS, resume=True) as server,
        raw_clients() as raw,
    ):
        first = await raw()
        token = await first.begin()
        await first.connection.abort()
        clients = [await raw(), await raw()]
        for client in clients:
            await client.send(rsio.ClientHello(extensions=(RESUMING,)))
            await client.read()
        async with trio.open_nursery() as nursery:
            for client in clients:
                nursery.start_soon(
                    client.send,
                    rsio.ExtensionMessage(type=ASK, body=token + first.received.to_bytes(8)),
                )
        for client in clients:
            await client.read()
        assert sorted(client.is_over for client in clients) == [False, True]
        assert len(server.peers) == 1


async def test_a_client_may_be_back_before_the_loss_is_noticed(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """The transport that the server still has is ended, and bytes that arrived on it count."""
    async with (
        serve(numbers_service(), URL, limits=LIMITS, resume=True) as server,
        raw_clients() as raw,
    ):
        first = await raw()
        token = await first.begin()
        await first.send(SUBSCRIBE)
        await first.read()
        second = await raw()
        answer = body_of(await second.ask(token, first.received), ANSWER)
        assert int.from_bytes(answer[32:]) == first.sent
        await first.read()
        assert first.is_over
        assert len(server.peers) == 1


@pytest.mark.parametrize("wrong", [-1, 1])
async def test_counts_that_do_not_fit_end_both_connections(
    autojump_clock: trio.testing.MockClock, wrong: int
) -> None:
    """A client cannot have received what was never sent,
    and cannot have lost what it has acknowledged.
    """
    ended: list[float] = []
    service = numbers_service(on_end=lambda: ended.append(trio.current_time()))
    async with serve(service, URL, limits=LIMITS, resume=True) as server, raw_clients() as raw:
        first = await raw()
        token = await first.begin(SUBSCRIBE)
        acknowledged = first.received
        await first.send(rsio.ExtensionMessage(type=ACKNOWLEDGE, body=acknowledged.to_bytes(8)))
        await first.read()
        await first.connection.abort()
        began = trio.current_time()
        (task,) = server._connections.running
        second = await raw()
        position = acknowledged + (1000 if wrong > 0 else -1)
        assert (await second.ask(token, position))[-1] == rsio.Goodbye(reason="resume")
        assert isinstance(task.reason, ConnectionLost)
        assert task.reason.resumable is False
        assert f"received {position} bytes; this side has sent " in str(task.reason)
        assert f"acknowledged {acknowledged} before" in str(task.reason)
        assert ended[0] - began < LIMITS.resume_timeout
        assert server.peers == ()


async def test_an_acknowledgement_of_what_was_never_sent_ends_the_connection(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """The error has both counts, and the peer gets its own."""
    async with (
        serve(numbers_service(), URL, limits=LIMITS, resume=True) as server,
        raw_clients() as raw,
    ):
        client = await raw()
        await client.begin()
        (task,) = server._connections.running
        await client.send(rsio.ExtensionMessage(type=ACKNOWLEDGE, body=(1 << 40).to_bytes(8)))
        assert await client.until_goodbye() == f"protocol:resume {1 << 40}"
        assert f"has received {1 << 40} bytes; this side has sent " in str(
            task.session.close_reason[1]
        )


@pytest.mark.parametrize(
    "message",
    [
        rsio.ExtensionMessage(type=ACKNOWLEDGE, body=bytes(7)),
        rsio.ExtensionMessage(type=ACKNOWLEDGE, body=bytes(9)),
        bytes([ACKNOWLEDGE, 0x80, 0x80, 0x01]),  # the length alone
        rsio.ExtensionMessage(type=TOKEN, body=bytes(36)),  # a client has no token to give
    ],
)
async def test_a_malformed_message_ends_the_connection(
    autojump_clock: trio.testing.MockClock, message: rsio.Message | bytes
) -> None:
    """On its length, if that is wrong."""
    async with serve(numbers_service(), URL, limits=LIMITS, resume=True), raw_clients() as raw:
        client = await raw()
        await client.begin()
        await client.send(message)
        assert await client.until_goodbye() == "protocol:resume"


@pytest.mark.parametrize("body", [bytes(39), bytes(41), b""])
async def test_a_malformed_question_ends_its_connection_alone(
    autojump_clock: trio.testing.MockClock, body: bytes
) -> None:
    """The connection that was lost stays."""
    async with (
        serve(numbers_service(), URL, limits=LIMITS, resume=True) as server,
        raw_clients() as raw,
    ):
        first = await raw()
        await first.begin()
        await first.connection.abort()
        second = await raw()
        await second.send(rsio.ClientHello(extensions=(RESUMING,)))
        await second.read()
        await second.send(rsio.ExtensionMessage(type=ASK, body=body))
        assert await second.until_goodbye() == "protocol:resume"
        assert server.statistics().suspended == 1


async def test_a_client_that_resumes_has_the_time_of_a_handshake_and_no_streams(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """It holds a place before the hello, as any stranger does; and requests on it are refused."""
    async with (
        serve(numbers_service(), URL, limits=LIMITS, resume=True) as server,
        raw_clients() as raw,
    ):
        first = await raw()
        token = await first.begin()
        await first.connection.abort()
        silent = await raw()
        await silent.send(rsio.ClientHello(extensions=(RESUMING,)))
        await silent.read()
        await trio.sleep(LIMITS.handshake_timeout)
        assert await silent.until_goodbye() == "limit:handshake"
        greedy = await raw()
        await greedy.send(rsio.ClientHello(extensions=(RESUMING,)), SUBSCRIBE)
        await greedy.read()
        await greedy.send(rsio.ExtensionMessage(type=ASK, body=token + first.received.to_bytes(8)))
        messages = await greedy.read()
        assert body_of(messages, ANSWER)
        assert [each for each in messages if isinstance(each, rsio.OnNext)] == []
        assert server.statistics().sending.elements == 0


async def test_a_token_belongs_to_its_principal(autojump_clock: trio.testing.MockClock) -> None:
    """With the credentials of another user it is refused, in the words of a token that is
    unknown; and it stays good.
    """

    def authenticate(_scheme: str, data: bytes, _peer: Any) -> str | None:
        return data.decode() if data in (b"anna", b"bert") else None

    service = Service(authenticate=authenticate)
    bearer = [b"\x06bearer" + bytes([len(name)]) + name for name in (b"anna", b"bert")]
    async with serve(service, URL, limits=LIMITS, resume=True), raw_clients() as raw:

        async def introduced(extension: int, credentials: bytes) -> Any:
            client = await raw()
            await client.send(rsio.ClientHello(extensions=(2, extension)))
            await client.read()
            await client.send(rsio.ExtensionMessage(type=0x42, body=credentials))
            return client

        first = await introduced(5, bearer[0])
        token = body_of(await first.read(), TOKEN)[:32]
        await first.connection.abort()
        question = rsio.ExtensionMessage(type=ASK, body=token + first.received.to_bytes(8))
        foreign = await introduced(RESUMING, bearer[1])
        await foreign.send(question)
        assert await foreign.until_goodbye() == "resume"
        own = await introduced(RESUMING, bearer[0])
        await own.send(question)
        assert body_of(await own.read(), ANSWER)


async def test_a_client_with_credentials_shows_them_again(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Its principal is the same, so it goes on."""
    seen: list[str] = []

    async def authenticate(_scheme: str, data: bytes, _peer: Any) -> str:
        seen.append(data.decode())
        await trio.sleep(0.1)
        return data.decode()

    service = Service(authenticate=authenticate)

    @service.request("ask")
    async def ask() -> str:
        return "answer"

    async with (
        serve(service, URL, limits=LIMITS, resume=True),
        connect(URL, limits=LIMITS, resume=True, credentials=Credentials.bearer("anna")) as peer,
    ):
        assert await peer.request("ask", type=str) == "answer"
        await cut(peer)
        assert await peer.request("ask", type=str) == "answer"
        assert peer.statistics().resumed == 1
    assert seen == ["anna", "anna"]


async def test_both_sides_examine_each_other_again(autojump_clock: trio.testing.MockClock) -> None:
    """The server also shows its credentials on the next transport."""
    seen: list[str] = []

    def authenticate(_scheme: str, data: bytes, _peer: Any) -> str:
        seen.append(data.decode())
        return data.decode()

    service = Service(authenticate=authenticate)

    @service.request("ask")
    async def ask() -> str:
        return "answer"

    examined: Any = {"credentials": Credentials.bearer("anna"), "authenticate": authenticate}
    async with (
        serve(service, URL, limits=LIMITS, resume=True, credentials=Credentials.bearer("server")),
        connect(URL, limits=LIMITS, resume=True, **examined) as peer,
    ):
        assert await peer.request("ask", type=str) == "answer"
        await cut(peer)
        assert await peer.request("ask", type=str) == "answer"
        assert peer.statistics().resumed == 1
    assert seen == ["anna", "server"] * 2


async def test_a_suspended_connection_keeps_its_place_and_its_client_is_let_in(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """The client that comes back needs no second slot."""
    limits = replace(LIMITS, max_connections=1)
    async with (
        serve(numbers_service(), URL, limits=limits, resume=True) as server,
        raw_clients() as raw,
    ):
        first = await raw()
        token = await first.begin()
        await first.connection.abort()
        await trio.testing.wait_all_tasks_blocked()
        second = await raw()
        assert body_of(await second.ask(token, first.received), ANSWER)
        await second.send(SUBSCRIBE)
        await second.read()
        assert len(server.peers) == 1
        full = await raw()
        await full.send(rsio.ClientHello())
        assert await full.until_goodbye() == "places:connections"
        assert server.refused["places:connections"] >= 1
        # And when it has gone for good, its place is free.
        await second.send(rsio.Goodbye())
        await second.connection.aclose()
        await trio.sleep(2)
        last = await raw()
        assert await last.begin()


async def test_the_connection_that_was_lost_first_gives_way_to_a_living_client(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Clients that were reset at once kept all others out for `resume_timeout`."""
    limits = replace(LIMITS, max_connections=3)
    async with (
        serve(numbers_service(), URL, limits=limits, resume=True) as server,
        raw_clients() as raw,
    ):
        lost = [await raw() for _ in range(3)]
        tokens = [await each.begin() for each in lost]
        for each in lost:
            await each.connection.abort()
            await trio.testing.wait_all_tasks_blocked()
        assert server.statistics().suspended == 3
        # A client that only knocks takes nothing from anyone.
        silent, living = await raw(), await raw()
        await trio.testing.wait_all_tasks_blocked()
        assert server.statistics().suspended == 3
        await living.begin()
        await silent.connection.abort()
        await trio.testing.wait_all_tasks_blocked()
        assert server.statistics().suspended == 2
        assert len(server._admission._places) == 3
        late, early = await raw(), await raw()
        *_, refusal = await late.ask(tokens[0], lost[0].received)
        assert isinstance(refusal, rsio.Goodbye)
        assert refusal.reason == "resume"
        assert body_of(await early.ask(tokens[2], lost[2].received), ANSWER)
        await early.send(SUBSCRIBE)
        await early.read()
        assert server.statistics().resumed == 1


async def test_many_resumed_connections_do_not_stop_the_server_from_accepting(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """The places of their new transports are given back."""
    async with (
        serve(numbers_service(), URL, limits=LIMITS, resume=True) as server,
        raw_clients() as raw,
    ):
        for _ in range(10):
            first = await raw()
            token = await first.begin()
            await first.connection.abort()
            second = await raw()
            assert body_of(await second.ask(token, first.received), ANSWER)
            await second.send(SUBSCRIBE)
        await trio.sleep(1)
        assert len(server.peers) == 10
        assert len(server._admission.open) == 10


async def test_leaving_a_server_ends_suspended_connections_at_once(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """No goodbye can reach their clients."""
    async with raw_clients() as raw:
        async with serve(numbers_service(), URL, limits=LIMITS, resume=True):
            first = await raw()
            await first.begin(SUBSCRIBE)
            await first.connection.abort()
            await trio.testing.wait_all_tasks_blocked()
            began = trio.current_time()
        assert trio.current_time() - began < 1


async def test_a_resumed_connection_gets_the_goodbye_of_its_server(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """The transport belongs to another place than the connection,
    and the shutdown reaches the connection.
    """
    async with raw_clients() as raw, trio.open_nursery() as nursery:
        async with serve(numbers_service(), URL, limits=LIMITS, resume=True):
            first = await raw()
            token = await first.begin()
            await first.connection.abort()
            second = await raw()
            await second.ask(token, first.received)
            await second.send(SUBSCRIBE)
            await second.read()
            began = trio.current_time()

            async def answer() -> None:
                assert await second.until_goodbye() == "shutdown"
                await second.send(rsio.Goodbye())
                await second.connection.aclose()

            nursery.start_soon(answer)
        assert trio.current_time() - began < 5


async def test_a_url_of_another_protocol_cannot_resume() -> None:
    """ReactiveSocket has no acknowledgements; the error says what would work."""
    with pytest.raises(
        UsageError,
        match=r"resume=True: 'reactivesocket\+memory://x' speaks reactivesocket, which cannot",
    ):
        serve(Service(), "reactivesocket+memory://x", resume=True)


async def test_publishers_wait_for_acknowledgements(autojump_clock: trio.testing.MockClock) -> None:
    """Above `resume_bytes` no element is asked for, although the client reads and requests; and
    after an acknowledgement they go on.
    """
    made: list[int] = []
    service = Service()

    @service.publisher("many")
    async def many() -> AsyncIterator[bytes]:
        for number in range(1_000_000):
            made.append(number)
            yield bytes(1000)

    limits = replace(LIMITS, resume_bytes=50_000, outbound_high=20_000)
    async with serve(service, URL, limits=limits, resume=True) as server, raw_clients() as raw:
        client = await raw()
        await client.begin(rsio.Subscribe(publisher="many", subscriber=0, demand=1 << 40))
        await client.read()
        (peer,) = server.peers
        first = len(made)
        assert 50 <= first < 200
        assert peer.statistics().retained_bytes > 50_000
        for _ in range(3):
            before = len(made)
            await client.read()
            assert len(made) == before
            await client.send(
                rsio.ExtensionMessage(type=ACKNOWLEDGE, body=client.received.to_bytes(8))
            )
            await client.read()
            assert len(made) > before + 30
