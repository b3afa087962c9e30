"""A client that looks for the next link of its connection: when it tries, when it gives up, and
its error for each answer of the server.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace

import pytest
import trio
import trio.testing

from penstock.api import ConnectionLost, Limits, Rejected, UsageError
from penstock.protocols import rsio
from penstock.runtime import connect, remote, serve, subscribe
from penstock.runtime.client._redial import (
    LONGEST_PAUSE,
    ClientHandover,
    ClientResumption,
    NotNowError,
    judge,
)
from penstock.spi import (
    Connection,
    MessageConnection,
    PeerIdentity,
    Reconnect,
    TransportOptions,
    parse_url,
)
from penstock.transports import MemoryTransport
from tests.runtime._resuming import ANSWER, ASK, LIMITS, RESUMING, TOKEN, URL, cut, numbers_service

FIRST, SECOND = bytes(32), bytes(range(32))
LOST = ConnectionLost("the line was cut")


class FakeConnection(MessageConnection):
    """A connection that is only passed on."""

    async def send(self, _: object, /) -> None: ...
    async def receive(self) -> None: ...
    async def aclose(self) -> None: ...
    async def abort(self) -> None: ...


class Dialler:
    """Attempts whose outcomes the test gives, in order; the last one is repeated."""

    def __init__(self, *outcomes: Exception | tuple[bytes, int]) -> None:
        self.outcomes = list(outcomes)
        self.asked: list[tuple[bytes, int]] = []
        self.times: list[float] = []
        self.made = FakeConnection(peer=PeerIdentity(address="test"))

    async def dial(self, token: bytes, received: int, _kept: int) -> tuple[Connection, bytes, int]:
        await trio.lowlevel.checkpoint()
        self.asked.append((token, received))
        self.times.append(trio.current_time())
        outcome = self.outcomes[0] if len(self.outcomes) == 1 else self.outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return self.made, *outcome


def resumption(
    dialler: Dialler, limits: Limits = LIMITS, *, seconds: float = 60.0
) -> ClientResumption:
    found = ClientResumption(limits, dialler.dial)
    found.on_token(FIRST, seconds)
    return found


async def test_the_first_attempt_is_made_at_once_and_brings_the_next_token(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Each token is used once."""
    dialler = Dialler((SECOND, 7), (FIRST, 9))
    found = resumption(dialler)
    began = trio.current_time()
    assert await found.find_link(LOST) == (dialler.made, 7)
    assert trio.current_time() == began
    assert await found.find_link(LOST) == (dialler.made, 9)
    assert [token for token, _ in dialler.asked] == [FIRST, SECOND]


async def test_pauses_grow_and_the_shorter_time_counts(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """The server has said for how long it keeps the connection."""
    for limits, seconds in (
        (replace(LIMITS, resume_timeout=200.0), 90.0),
        (replace(LIMITS, resume_timeout=90.0), 200.0),
    ):
        dialler = Dialler(NotNowError("no answer"))
        began = trio.current_time()
        with pytest.raises(
            ConnectionLost,
            match=r"^the line was cut. The connection .* within 90 s .*; the last attempt: no answer$",
        ) as caught:
            await resumption(dialler, limits, seconds=seconds).find_link(LOST)
        assert caught.value.resumable is False
        assert trio.current_time() - began == pytest.approx(90.0)
        pauses = [
            later - earlier
            for earlier, later in zip(dialler.times, dialler.times[1:], strict=False)
        ]
        assert max(pauses) <= LONGEST_PAUSE
        assert len(pauses) > 90 / LONGEST_PAUSE
        assert {token for token, _ in dialler.asked} == {FIRST}


async def test_a_refusal_ends_the_attempts(autojump_clock: trio.testing.MockClock) -> None:
    """No later one can do better. Without a token none is made."""
    dialler = Dialler(ConnectionLost("the server does not know it"))
    with pytest.raises(
        ConnectionLost, match="was not resumed: the server does not know it"
    ) as caught:
        await resumption(dialler).find_link(LOST)
    assert (len(dialler.asked), caught.value.resumable) == (1, False)
    with pytest.raises(ConnectionLost, match="before the server gave it a token"):
        await ClientResumption(LIMITS, dialler.dial).find_link(LOST)
    assert len(dialler.asked) == 1


@pytest.mark.parametrize(
    ("reason", "token", "kind"),
    [
        (ConnectionLost("gone"), "lost", NotNowError),
        (ConnectionLost("closed"), "shutdown", NotNowError),
        (Rejected("full", temporary=True), "places:connections", NotNowError),
        (Rejected("no"), "auth", ConnectionLost),
        (ConnectionLost("unknown"), "resume", ConnectionLost),
        (ConnectionLost("broken"), "protocol:resume", ConnectionLost),
    ],
)
def test_an_attempt_is_judged_by_the_words_of_the_server(
    reason: Exception, token: str, kind: type[Exception]
) -> None:
    """A server that is gone or full may be back; one that has refused is not asked again."""
    assert type(judge(reason, token)) is kind


async def test_a_handover_is_due_when_the_server_has_answered() -> None:
    """Before the answer of the server the handover is not due."""
    handover = ClientHandover(FIRST, 7, 0)
    assert not handover.is_asked
    handover.takeover.said = SECOND, 9
    assert handover.is_asked
    await handover.prepare(None, lambda: None)


async def test_a_server_whose_count_does_not_fit_ends_the_connection(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """The error of the streams has both figures."""
    fake = _FakeServer(lambda sent: sent + 1000)
    async with fake.run(), connect(URL, limits=LIMITS, resume=True) as peer:
        async with peer.subscribe("numbers", demand=1) as stream:
            await fake.token_sent.wait()
            await trio.testing.wait_all_tasks_blocked()
            await cut(peer)
            with pytest.raises(
                ConnectionLost, match=r"has received \d+ bytes; this side has sent \d+,"
            ) as caught:
                await anext(stream)
            assert caught.value.resumable is False


async def test_a_restarted_server_knows_no_token(autojump_clock: trio.testing.MockClock) -> None:
    """The streams end at once; with `reconnect` new ones find the next connection."""
    async with serve(numbers_service(), URL, limits=LIMITS, resume=True) as server:
        async with connect(URL, limits=LIMITS, resume=True, reconnect=Reconnect()) as peer:
            async with peer.subscribe("numbers", demand=1) as stream:
                await anext(stream)
                assert server._connections.resumable is not None
                server._connections.resumable._by_token.clear()
                began = trio.current_time()
                await cut(peer)
                with pytest.raises(ConnectionLost, match="'resume'") as caught:
                    while True:
                        await anext(stream)
                assert caught.value.resumable is False
                assert trio.current_time() - began < 1
            assert await peer.request("ask", type=str) == "answer"


async def test_a_source_by_url_resumes_too(autojump_clock: trio.testing.MockClock) -> None:
    """Each subscription has its own connection."""
    async with serve(numbers_service(20), URL, limits=LIMITS, resume=True) as server:
        async with subscribe(f"{URL}/numbers", demand=2, limits=LIMITS, resume=True) as stream:
            read = [await anext(stream)]
            (peer,) = server.peers
            await cut(peer)
            read += [element async for element in stream]
        assert read == [b"%d" % number for number in range(20)]
        assert server.statistics().resumed == 1


async def test_another_protocol_cannot_resume() -> None:
    """The mistake is an error of the call."""
    for call in (connect, lambda url, **options: remote(url, publisher="x", **options)):
        with pytest.raises(
            UsageError, match=r"resume=True: .* speaks reactivesocket, which cannot"
        ):
            call("reactivesocket+memory://x", resume=True)


class _FakeServer:
    """A server that speaks the messages by hand, and counts as the test says."""

    def __init__(self, count: Callable[[int], int]) -> None:
        self.count = count
        self.token_sent = trio.Event()

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Serve for the length of the block."""
        async with trio.open_nursery() as nursery:
            listener = await MemoryTransport().listen(
                parse_url(URL), options=TransportOptions(), nursery=nursery
            )

            async def accept() -> None:
                while True:
                    nursery.start_soon(self._serve, await listener.accept())

            nursery.start_soon(accept)
            yield
            nursery.cancel_scope.cancel()
        await listener.aclose()

    async def _serve(self, connection: Connection) -> None:
        with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            await self.serve(connection)

    async def serve(self, connection: Connection) -> None:
        received, hello = 0, b""
        while data := await connection.receive():
            received += len(data)
            is_first = not hello
            hello = hello or bytes(data)
            if is_first and bytes([RESUMING]) in hello[3:]:
                await connection.send(rsio.encode(rsio.ServerHello(extensions=(5, RESUMING))))
            elif is_first:
                await connection.send(rsio.encode(rsio.ServerHello(extensions=(5, RESUMING))))
                await connection.send(
                    rsio.encode(
                        rsio.ExtensionMessage(type=TOKEN, body=FIRST + (60_000).to_bytes(4))
                    )
                )
                self.token_sent.set()
            elif bytes([ASK]) in data:
                await connection.send(
                    rsio.encode(
                        rsio.ExtensionMessage(
                            type=ANSWER, body=SECOND + self.count(received).to_bytes(8)
                        )
                    )
                )
