"""A link can be replaced: the same session, streams
and requests go on over another transport connection.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
import trio.testing

from penstock.api import ConnectionLost, Limits, Role, UsageError
from penstock.client import dialects_at
from penstock.runtime import Peer, Service
from penstock.runtime.connection import (
    ConnectionEvents,
    ConnectionSettings,
    ConnectionTask,
    new_connection,
)
from penstock.session import DialectSettings
from penstock.spi import Connection, TransportOptions, build_registry, parse_url
from penstock.transports import MemoryTransport
from tests.runtime._requests import Handlers

URL = parse_url("memory://replaced")


class LinkHarness:
    """Two connection tasks over memory, and the transport connections that replace one another."""

    def __init__(self, nursery: trio.Nursery, dialect: str) -> None:
        self.nursery = nursery
        self.registry = build_registry()
        self.factory = dialects_at(self.registry, parse_url(f"{dialect}+{URL}"))[0]
        self.transport = MemoryTransport()
        self.ends: list[str] = []
        self.told: list[Exception] = []

    async def start(self, service: Service, reconnect: bool) -> None:
        self.listener = await self.transport.listen(
            URL, options=TransportOptions(), nursery=self.nursery
        )
        first = await self.connect()
        self.client = self.new(first, Role.CLIENT, Service(), self.reconnect if reconnect else None)
        self.server = self.new(
            await self.listener.accept(),
            Role.SERVER,
            service,
            self.accept_again if reconnect else None,
        )
        self.nursery.start_soon(self.client.run, self.nursery)
        self.nursery.start_soon(self.server.run, self.nursery)
        self.peer = Peer(self.client, self.registry)
        if self.factory.name == "rsio":
            # A ReactiveSocket client is open when the first answer arrives.
            await self.peer.wait_accepted()

    def new(
        self,
        connection: Connection,
        role: Role,
        service: Service,
        replace_link: Callable[[Exception], Awaitable[Connection | None]] | None,
    ) -> ConnectionTask:
        settings = ConnectionSettings(
            service=service,
            registry=self.registry,
            limits=Limits(),
            on_violation=self.told.append,
            replace_link=replace_link,
        )
        return new_connection(
            connection,
            settings,
            role=role,
            events=ConnectionEvents(
                self.registry.events, address=str(URL), accepted=role is Role.SERVER
            ),
            offers=[(self.factory, DialectSettings())],
        )

    async def connect(self) -> Connection:
        return await self.transport.connect(URL, options=TransportOptions(), nursery=self.nursery)

    async def reconnect(self, error: Exception) -> Connection | None:
        self.ends.append(f"client: {type(error).__name__}")
        return await self.connect()

    async def accept_again(self, error: Exception) -> Connection | None:
        self.ends.append(f"server: {type(error).__name__}")
        try:
            return await self.listener.accept()
        except trio.ClosedResourceError:
            # The client has left: ReactiveSocket has no goodbye,
            # so the server sees the end of the transport alone.
            return None

    async def cut(self) -> None:
        """End the transport of both sides, at a quiet point."""
        await trio.testing.wait_all_tasks_blocked()
        await self.client.connection.abort()
        await trio.testing.wait_all_tasks_blocked()


@asynccontextmanager
async def harness(
    service: Service, *, dialect: str = "rsio", reconnect: bool = True
) -> AsyncIterator[LinkHarness]:
    with trio.fail_after(5):
        async with trio.open_nursery() as nursery:
            made = LinkHarness(nursery, dialect)
            await made.start(service, reconnect)
            yield made
            made.client.leave("")
            await made.listener.aclose()


def counting_service() -> Service:
    service = Service()

    @service.publisher("numbers")
    async def numbers() -> AsyncIterator[bytes]:
        for number in range(100):
            yield b"%d" % number

    return service


@pytest.mark.parametrize("dialect", ["rsio", "reactivesocket"])
async def test_a_stream_goes_on_over_a_second_transport_connection(dialect: str) -> None:
    """Both sides replace their link, twice;
    no element is lost or repeated, and the session is the same.
    """
    async with harness(counting_service(), dialect=dialect) as made:
        session, links = made.client.session, {made.client.connection}
        async with made.peer.subscribe("numbers", demand=4) as stream:
            read = [await anext(stream) for _ in range(10)]
            for _ in range(2):
                await made.cut()
                read += [await anext(stream) for _ in range(30)]
                links.add(made.client.connection)
            read += [element async for element in stream]
        assert read == [b"%d" % number for number in range(100)]
        assert made.client.session is session
        assert len(links) == 3
    assert sorted(made.ends[:4]) == ["client: ConnectionLost"] * 2 + ["server: ConnectionLost"] * 2
    assert made.told == []


async def test_what_is_queued_while_there_is_no_link_is_sent_by_the_next_one() -> None:
    """A request that is made in between is answered, and a handler
    that was at work keeps its task.
    """
    handlers, go = Handlers(), trio.Event()

    @handlers.service.publisher("slow")
    async def slow() -> AsyncIterator[bytes]:
        await go.wait()
        yield b"slow"

    async with harness(handlers.service, dialect="reactivesocket") as made:
        answers: list[bytes] = []
        assert await made.peer.request_response("ab") == b"ba"

        async def ask(data: str) -> None:
            answers.append(await made.peer.request_response(data))

        connect_again, may_connect = made.connect, trio.Event()

        async def connect() -> Connection:
            await may_connect.wait()
            return await connect_again()

        made.connect = connect  # type: ignore[method-assign]  # the second one waits
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask, "slow")
            await made.cut()
            nursery.start_soon(ask, "abc")
            await trio.testing.wait_all_tasks_blocked()
            assert answers == []
            go.set()
            await trio.testing.wait_all_tasks_blocked()
            assert answers == []
            may_connect.set()
        assert sorted(answers) == [b"cba", b"slow"]


async def test_without_a_hook_the_end_of_the_transport_ends_the_session() -> None:
    """The streams get ConnectionLost."""
    async with harness(counting_service(), reconnect=False) as made:
        async with made.peer.subscribe("numbers", demand=1) as stream:
            await anext(stream)
            await made.cut()
            with pytest.raises(ConnectionLost):
                while True:
                    await anext(stream)
    assert made.ends == []


@pytest.mark.parametrize(
    ("hook", "reported"),
    [("none", []), ("raises", [KeyError] * 2), ("something else", [UsageError] * 2)],
)
async def test_a_hook_that_gives_no_connection_ends_the_session(
    hook: str, reported: list[type[Exception]]
) -> None:
    """Its exception is reported; the streams get the end of the transport."""

    async def fails(error: Exception) -> Connection | None:
        if hook == "raises":
            raise KeyError("hook")
        return "no connection" if hook == "something else" else None  # type: ignore[return-value]  # the point

    async with trio.open_nursery() as nursery:
        made = LinkHarness(nursery, "rsio")
        made.reconnect = fails  # type: ignore[method-assign]  # for this test
        made.accept_again = fails  # type: ignore[method-assign]  # for this test
        await made.start(counting_service(), reconnect=True)
        async with made.peer.subscribe("numbers", demand=1) as stream:
            await anext(stream)
            await made.cut()
            with pytest.raises(ConnectionLost):
                while True:
                    await anext(stream)
        await made.listener.aclose()
    assert [type(error) for error in made.told] == reported


async def test_a_message_that_was_cut_ends_the_session() -> None:
    """The rest of it will never come, so the hook is not asked."""
    async with harness(counting_service()) as made:
        half: Any = b"\x05\x00"  # the beginning of a message, in both directions
        await trio.testing.wait_all_tasks_blocked()
        await made.server.connection.send(half[:1])
        await made.cut()
        with pytest.raises(ConnectionLost):
            await made.peer.wait_accepted()
    assert "client: ConnectionLost" not in made.ends


async def test_leaving_while_a_hook_is_at_work_cancels_it(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """A goodbye cannot be sent then, and no answer can come: the connection ends at once."""

    async def never(error: Exception) -> Connection | None:
        await trio.sleep_forever()
        raise AssertionError

    async with trio.open_nursery() as nursery:
        made = LinkHarness(nursery, "rsio")
        made.reconnect = never  # type: ignore[method-assign]  # for this test
        made.accept_again = never  # type: ignore[method-assign]  # for this test
        await made.start(counting_service(), reconnect=True)
        await made.cut()
        began = trio.current_time()
        made.client.leave("")
        made.server.leave("")
        await made.listener.aclose()
    assert trio.current_time() == began


async def test_the_transport_is_told_of_the_hellos_and_of_the_goodbye(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Once on each side. The side that left first has a reason;
    if it left in good order, that is empty on both sides.
    """
    calls: list[str] = []
    monkeypatch.setattr(Connection, "on_open", lambda _: calls.append("open"))
    monkeypatch.setattr(
        Connection, "on_goodbye", lambda _, reason: calls.append(f"goodbye {reason!r}")
    )
    async with harness(counting_service(), reconnect=False) as made:
        assert calls == ["open", "open"]
        made.client.leave("limit:names")
    assert sorted(calls[2:]) == ["goodbye ''", "goodbye 'limit:names'"]
    calls.clear()
    async with harness(counting_service(), reconnect=False):
        pass
    assert calls == ["open", "open", "goodbye ''", "goodbye ''"]


async def test_a_second_transport_connection_is_told_of_the_hellos_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They were said on the first one."""
    calls: list[Connection] = []

    def note(connection: Connection) -> None:
        calls.append(connection)

    monkeypatch.setattr(Connection, "on_open", note)
    async with harness(counting_service()) as made:
        await made.cut()
        assert len(set(map(id, calls))) == 4
        assert made.client.connection in calls


async def test_a_transport_that_raises_when_it_is_told_is_reported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The connection goes on."""

    def fail(_: Connection) -> None:
        raise ValueError("a fault of a plugin")

    monkeypatch.setattr(Connection, "on_open", fail)
    async with harness(counting_service(), reconnect=False) as made:
        async with made.peer.subscribe("numbers") as stream:
            assert await anext(stream) == b"0"
    assert [type(error) for error in made.told] == [ValueError, ValueError]


async def test_bytes_that_wait_in_the_transport_count_as_held(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The memory budget would not see them otherwise."""
    async with harness(counting_service(), reconnect=False) as made:
        before = made.server.held()
        monkeypatch.setattr(Connection, "held", lambda _: 12_345)
        assert made.server.held() == before + 12_345
