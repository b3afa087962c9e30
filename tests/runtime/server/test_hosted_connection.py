"""A transport that attends its connections, as an outside plugin writes it."""

import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest
import trio
import trio.testing

from penstock.api import LimitExceeded, Limits
from penstock.runtime import Service, serve, subscribe
from penstock.spi import Connection, PeerIdentity, build_registry
from tests.runtime._services import numbers_service, raw_connection
from tests.runtime.server._knock import KnockPlugin


class Fixture:
    """A server at ``knock://test``, and its clients."""

    def __init__(
        self,
        service: Service | None = None,
        limits: Limits | None = None,
        observers: tuple[object, ...] = (),
    ) -> None:
        self.plugin = KnockPlugin()
        self.transport = self.plugin.transport
        self.told: list[Exception] = []
        self.registry = build_registry([self.plugin, *observers])
        self.service = service or numbers_service()
        self.limits = limits

    def serve(self) -> Any:
        return serve(
            self.service,
            "knock://test",
            registry=self.registry,
            limits=self.limits,
            on_violation=self.told.append,
        )

    async def ask(self, nursery: trio.Nursery, line: str) -> Connection:
        client = await raw_connection(nursery)
        await client.send(f"{line}\n".encode())
        return client


async def read_all(client: Connection) -> bytes:
    received = b""
    while (data := await client.receive()) is not None:
        received += data
    return received


async def test_a_transport_answers_a_client_itself(autojump_clock: trio.testing.MockClock) -> None:
    """It opens a publisher by its name;
    the elements come with their serializer, and a failure has its public text.
    """
    fixture = Fixture()
    async with fixture.serve(), trio.open_nursery() as nursery:
        for line, answer in (
            ("read numbers/3", b"0\n1\n2\nend\n"),
            ("read failing", b"one\nfailed the publisher failed\n"),
            ("read honest", b"one\nfailed out of stock\n"),
            ("read nowhere", b"refused NotAvailable no such publisher\n"),
        ):
            client = await fixture.ask(nursery, line)
            assert await read_all(client) == answer
            await client.aclose()
    # The exception of a publisher is reported here.
    # A name that leads nowhere is not a fault of this side.
    assert [str(error) for error in fixture.told] == ["a secret", "out of stock"]


async def test_each_connection_has_the_statistics_of_its_server(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """They are equal, so that a collector counts the server once."""
    fixture = Fixture()
    async with fixture.serve() as server, trio.open_nursery() as nursery:
        for _ in range(2):
            client = await fixture.ask(nursery, "read numbers/3")
            await read_all(client)
            await client.aclose()
        hosts = fixture.transport.hosts
        assert [host.statistics for host in hosts] == [server.statistics] * 2


async def test_a_session_talks_on_a_connection_that_is_handed_over(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """The client's first line is read by the transport, and all that follows by the session."""
    fixture = Fixture()

    async with (
        fixture.serve(),
        subscribe("knock://test/numbers/3", registry=fixture.registry, serializer="json") as stream,
    ):
        assert [number async for number in stream] == [0, 1, 2]
    assert fixture.told == []


async def test_parts_of_a_connection_are_connections(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Each has its own session and place, and a shutdown says goodbye on each."""
    fixture = Fixture(limits=Limits(handshake_timeout=3.0))
    async with fixture.serve() as server, trio.open_nursery() as nursery:
        client = await fixture.ask(nursery, "split")
        assert await client.receive() == b"adopted adopted\n"
        await trio.testing.wait_all_tasks_blocked()
        assert server.statistics().handshaking == 2
        # Silent strangers, as every connection that says no hello.
        # Their goodbye has its deadline too.
        await trio.sleep(10)
        assert server.statistics().handshaking == 0
        assert sum(server.refused.values()) == 2


async def test_without_a_place_a_part_is_refused_with_the_reason(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """The carrier has one place, its first part the other."""
    fixture = Fixture(limits=Limits(max_connections=2))
    async with fixture.serve() as server, trio.open_nursery() as nursery:
        client = await fixture.ask(nursery, "split")
        answer = await client.receive()
        # The second part cuts the first one, which is a silent stranger.
        assert answer == b"adopted adopted\n"
        await trio.testing.wait_all_tasks_blocked()
        assert server.refused == {"places:silent": 1}


async def test_a_silent_client_is_cut_after_the_time_for_a_handshake(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """It counts as a stranger until the transport has recognised it; a recognised one may stay."""
    fixture = Fixture(limits=Limits(handshake_timeout=3.0))
    async with fixture.serve() as server, trio.open_nursery() as nursery:
        silent = await raw_connection(nursery)
        staying = await fixture.ask(nursery, "stay")
        await trio.testing.wait_all_tasks_blocked()
        assert server.statistics().handshaking == 1
        began = trio.current_time()
        assert await read_all(silent) == b""
        assert trio.current_time() - began == pytest.approx(3.0)
        assert server.refused == {"handshake": 1}
        await trio.sleep(100)
        assert fixture.transport.ended == ["attended"]
        await silent.aclose()
    assert fixture.transport.ended == ["attended", "drained", "attended"]
    await staying.aclose()


async def test_a_stranger_makes_room_and_a_recognised_client_does_not(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """The oldest connection that has not made itself known is cut when the places are taken."""
    fixture = Fixture(limits=Limits(max_connections=2))
    async with fixture.serve() as server, trio.open_nursery() as nursery:
        staying = await fixture.ask(nursery, "stay")
        silent = await raw_connection(nursery)
        await trio.testing.wait_all_tasks_blocked()
        another = await fixture.ask(nursery, "stay")
        assert await read_all(silent) == b""
        await trio.testing.wait_all_tasks_blocked()
        assert server.refused == {"places:silent": 1}
        for client in (staying, silent, another):
            await client.aclose()


async def test_a_shutdown_waits_for_a_transport_that_drains_and_no_longer(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """A transport that ignores the shutdown is cancelled after `Limits.drain`."""
    fixture = Fixture(limits=Limits(drain=7.0))
    async with trio.open_nursery() as nursery:
        async with fixture.serve():
            client = await fixture.ask(nursery, "stubborn")
            await trio.testing.wait_all_tasks_blocked()
            began = trio.current_time()
        assert trio.current_time() - began == pytest.approx(7.0)
        await client.aclose()
    assert fixture.told == []


async def test_a_transport_that_raises_ends_its_connection_only(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """The exception is reported."""
    fixture = Fixture()
    async with fixture.serve(), trio.open_nursery() as nursery:
        client = await fixture.ask(nursery, "nonsense")
        assert await read_all(client) == b""
        assert [str(error) for error in fixture.told] == ["nonsense"]
        other = await fixture.ask(nursery, "read numbers/1")
        assert await read_all(other) == b"0\nend\n"
        await client.aclose()
        await other.aclose()


async def test_a_client_is_authenticated_as_on_any_connection(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """A refusal takes a quarter of a second for each cause;
    publishers see the principal, and `authorize` decides by it.
    """

    async def authenticate(scheme: str, data: bytes, peer: PeerIdentity) -> str | None:
        if data == b"crash":
            raise ValueError("in authenticate")
        return data.decode() if scheme == "basic" and data != b"mallory" else None

    async def authorize(principal: str, name: str) -> bool:
        if principal == "broken":
            raise ValueError("in authorize")
        return principal == "alice"

    service = Service(authenticate=authenticate, authorize=authorize)

    @service.publisher("who", serializer="text")
    async def who(peer: PeerIdentity) -> AsyncIterator[str]:
        yield str(peer.principal)

    fixture = Fixture(service)
    async with fixture.serve(), trio.open_nursery() as nursery:
        for line, answer, seconds in (
            ("read alice@who", b"alice\nend\n", 0.0),
            ("read bob@who", b"refused NotAvailable no such publisher\n", 0.0),
            ("read broken@who", b"refused NotAvailable no such publisher\n", 0.0),
            ("read mallory@who", b"refused AuthRefused the credentials were refused\n", 0.25),
            ("read crash@who", b"refused AuthRefused the credentials were refused\n", 0.25),
            ("read who", b"refused AuthRefused the credentials were refused\n", 0.25),
        ):
            began = trio.current_time()
            client = await fixture.ask(nursery, line)
            assert await read_all(client) == answer
            assert trio.current_time() - began == pytest.approx(seconds)
            await client.aclose()
    assert sorted(map(str, fixture.told)) == ["in authenticate", "in authorize"]


async def test_a_transport_that_forgets_to_authenticate_opens_nothing(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """A service that examines its clients is not opened to a client without a principal,
    nor one with setup= at all.
    """
    for service in (Service(authenticate=lambda *_: "x"), Service(setup=lambda data: True)):
        service.publish("open", [b"secret"])
        fixture = Fixture(service)
        urls = ["reactivesocket+knock://test"] if service.is_guarded else ["knock://test"]
        async with serve(service, *urls, registry=fixture.registry), trio.open_nursery() as nursery:
            client = await fixture.ask(nursery, "stay")
            await trio.testing.wait_all_tasks_blocked()
            [host] = fixture.transport.hosts
            with pytest.raises(Exception, match="no such publisher"):
                await host.open("open", client.peer, None, protocol="knock")  # type: ignore[arg-type]  # never called
            await client.aclose()


async def test_the_access_log_has_the_lines_of_the_transport(
    autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """If it is on; and a line for each stream that is refused."""
    fixture = Fixture()
    async with trio.open_nursery() as nursery:
        for is_on in (False, True):
            with caplog.at_level(
                logging.INFO if is_on else logging.CRITICAL + 1, logger="penstock.access"
            ):
                async with fixture.serve():
                    client = await fixture.ask(nursery, "read no\nwhere")
                    await read_all(client)
                    assert fixture.transport.hosts[-1].logs_access is is_on
                    await client.aclose()
    lines = [record.getMessage() for record in caplog.records if record.name == "penstock.access"]
    assert [line.partition(" peer=")[0] for line in lines] == ["knock", "stream"]
    assert 'name="no" outcome=refused' in lines[1]


async def test_tasks_of_a_transport_outlive_the_connection(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """They end when the server stops; one that raises is reported."""
    fixture = Fixture()
    ended: list[str] = []

    async def work(name: str) -> None:
        try:
            if name == "broken":
                raise ValueError(name)
            await trio.sleep_forever()
        finally:
            ended.append(name)

    async with trio.open_nursery() as nursery:
        async with fixture.serve():
            client = await fixture.ask(nursery, "read numbers/1")
            await read_all(client)
            await client.aclose()
            [host] = fixture.transport.hosts
            for name in ("broken", "lasting"):
                host.start_soon(work, name, name=name)
            await trio.testing.wait_all_tasks_blocked()
            assert ended == ["broken"]
        host.start_soon(work, "late", name="late")
    assert ended == ["broken", "lasting"]
    assert [str(error) for error in fixture.told] == ["broken"]


async def test_the_host_tells_the_limits_and_the_address_of_its_server(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """And reserves places for the clients of the transport."""
    fixture = Fixture(limits=Limits(max_subscriptions=1))
    async with fixture.serve(), trio.open_nursery() as nursery:
        client = await fixture.ask(nursery, "stay")
        await trio.testing.wait_all_tasks_blocked()
        [host] = fixture.transport.hosts
        assert (host.limits.max_subscriptions, host.address, host.is_draining) == (
            1,
            "memory://test",
            False,
        )
        host.recognise()
        cut: list[str] = []
        reservation = host.reserve(client.peer, lambda: 0, cut.append)
        reservation.note_asked()
        with pytest.raises(LimitExceeded):
            host.reserve(client.peer, lambda: 0, cut.append)
        reservation.end()
        host.reserve(client.peer, lambda: 0, cut.append)
        assert cut == []
        assert await host.authenticate("", b"", client.peer) is client.peer
        await client.aclose()
