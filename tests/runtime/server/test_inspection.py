"""The publisher ``penstock/demand``: the table once, then its changes; off by default; authorised;
bounded.
"""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import trio

from penstock import Service, connect, serve, subscribe
from penstock.api import Limits, PublisherFailed, Rejected, UsageError
from penstock.runtime.server._inspection import (
    KEYS,
    LOOK_SECONDS,
    MOST_INSPECTORS,
    MOST_OF_A_CORE,
    MOST_SECONDS,
    RECORD_SECONDS,
    RECORDS,
    differences,
    pause_after,
    renamed,
)
from tests.runtime.server._two_workers import FakeWorker, worker

MAP = "penstock/demand"


def numbers(**guards: Any) -> Service:
    service = Service(**guards)

    @service.publisher("endless")
    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b"n"

    return service


async def until_looked(stream: Any) -> list[dict[str, Any]]:
    """The messages up to the end of the next look."""
    messages = []
    async for message in stream:
        messages.append(message)
        if message["kind"] == "looked":
            break
    return messages


def streams_in(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        each for message in messages if message["kind"] == "streams" for each in message["streams"]
    ]


def by_key(messages: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {each["key"]: each for each in streams_in(messages)}


async def test_an_inspector_gets_the_table_and_then_what_changes(autojump_clock) -> None:
    """New streams with all fields, others with those that have changed, and the keys of those that
    have ended.
    """
    async with (
        serve(numbers(), "memory://a", inspect=True) as server,
        connect("memory://a") as peer,
        subscribe(f"memory://a/{MAP}", serializer="json") as inspector,
    ):
        async with peer.subscribe("endless", demand=0) as stream:
            stream.request(3)
            await trio.sleep(1)
            first = await until_looked(inspector)
            assert [message["kind"] for message in first] == ["service", "streams", "looked"]
            (record,) = (
                each for each in streams_in(first) if each["name"] == "endless" and each["out"]
            )
            assert (record["delivered"], record["waits"]) == (3, "demand")
            assert len(record) == 25
            stream.request(2)
            # Looks of the time before may be under way.
            while record["key"] not in (changed := by_key(await until_looked(inspector))):
                pass
            assert changed[record["key"]].keys() == {"key", "requested", "delivered", "since"}
            assert changed[record["key"]]["delivered"] == 5
            # From then on nothing but the inspector itself has moved.
            for _ in range(3):
                assert record["key"] not in by_key(await until_looked(inspector))
        while True:
            messages = await until_looked(inspector)
            gone = [message["keys"] for message in messages if message["kind"] == "gone"]
            if gone:
                break
        assert record["key"] in gone[0]
    assert server.addresses


@pytest.mark.parametrize("protocol", ["rsio", "reactivesocket"])
async def test_it_is_off_by_default(protocol: str, autojump_clock) -> None:
    """Then the name is as any that does not exist."""
    async with serve(numbers(), "memory://a"):
        with pytest.raises((PublisherFailed, Rejected), match="no such publisher"):
            async with subscribe(f"{protocol}+memory://a/{MAP}") as stream:
                await anext(stream)


@pytest.mark.parametrize("guard", ["authorize", "may_open"])
@pytest.mark.parametrize("protocol", ["rsio", "reactivesocket"])
async def test_an_inspector_without_rights_learns_nothing(
    guard: str, protocol: str, autojump_clock
) -> None:
    """The guards of the service are asked with its name, over each protocol, and a refusal is that
    of a name that does not exist.
    """
    asked = []

    def authorize(_principal: object, name: object) -> bool:
        asked.append(name)
        return name == "endless"

    def may_open(name: object, _peer: object) -> bool:
        asked.append(name)
        return name == "endless"

    guards = {"authorize": authorize} if guard == "authorize" else {"may_open": may_open}
    texts = []
    async with serve(numbers(**guards), "memory://a", inspect=True):
        for name in (MAP, "nothing"):
            with pytest.raises((PublisherFailed, Rejected)) as refused:
                async with subscribe(f"{protocol}+memory://a/{name}") as stream:
                    await anext(stream)
            texts.append(str(refused.value).replace(name, "NAME"))
        async with subscribe(f"{protocol}+memory://a/endless") as stream:
            assert await anext(stream) == b"n"
    assert texts[0] == texts[1]
    assert MAP in asked


async def test_more_inspectors_than_the_bound_are_refused(autojump_clock) -> None:
    """The others go on, and a place that becomes free can be taken."""
    async with (
        serve(numbers(), "memory://a", inspect=True),
        connect("memory://a") as peer,
        trio.open_nursery() as nursery,
    ):
        opened = []
        for _ in range(MOST_INSPECTORS):
            block = peer.subscribe(MAP, serializer="json")
            stream = await block.__aenter__()
            await anext(stream)
            opened.append((block, stream))
        with pytest.raises(PublisherFailed, match=f"has {MOST_INSPECTORS} inspectors"):
            async with peer.subscribe(MAP, serializer="json") as one_more:
                await anext(one_more)
        for _, stream in opened:
            await until_looked(stream)
        await opened[0][0].__aexit__(None, None, None)
        await trio.sleep(1)
        async with peer.subscribe(MAP, serializer="json") as one_more:
            assert (await anext(one_more))["kind"] == "service"
        for block, _ in opened[1:]:
            await block.__aexit__(None, None, None)
        nursery.cancel_scope.cancel()


async def test_a_thousand_inspectors_are_refused_by_the_bound(autojump_clock) -> None:
    """Each of them with the same text, and those that were let in go on."""
    async with serve(numbers(), "memory://a", inspect=True), trio.open_nursery() as nursery:
        let_in: list[Any] = []
        refused: list[str] = []

        async def look(peer: Any) -> None:
            try:
                async with peer.subscribe(MAP, serializer="json", demand=4) as stream:
                    let_in.append(await anext(stream))
                    async for _ in stream:
                        pass
            except PublisherFailed as full:
                refused.append(str(full))

        for _ in range(10):
            peer = await nursery.start(connected, "memory://a")
            for _ in range(100):
                nursery.start_soon(look, peer)
        await trio.sleep(5)
        assert [each["kind"] for each in let_in] == ["service"] * MOST_INSPECTORS
        assert len(refused) == 1000 - MOST_INSPECTORS
        assert all("end another one" in each for each in refused)
        nursery.cancel_scope.cancel()


async def connected(url: str, *, task_status: trio.TaskStatus[Any]) -> None:
    async with connect(url) as peer:
        task_status.started(peer)
        await trio.sleep_forever()


async def test_another_server_of_the_same_service_does_not_offer_it(autojump_clock) -> None:
    """The service is not changed, and what is added to it later is offered by both."""
    service = numbers()
    async with (
        serve(service, "memory://inspected", inspect=True),
        serve(service, "memory://plain"),
        connect("memory://inspected") as inspected,
        connect("memory://plain") as plain,
    ):
        assert service.names() == ["endless"]
        service.publish("later", [b"now"])
        for peer in (inspected, plain):
            assert await peer.request("later") == b"now"
        with pytest.raises((PublisherFailed, Rejected), match="no such publisher"):
            async with plain.subscribe(MAP) as stream:
                await anext(stream)


def test_a_name_that_is_taken_is_refused() -> None:
    """The program learns of it when it calls serve()."""
    service = numbers()
    service.publish(MAP, [b"mine"])
    with pytest.raises(UsageError, match="give it another name"):
        serve(service, "memory://a", inspect=True)


async def test_a_principal_is_shown_if_it_is_a_text(autojump_clock) -> None:
    """The text of another object may have what nobody should read."""

    class Secret:
        def __repr__(self) -> str:
            return "hunter2"

    for principal, shown in (("alice", "alice"), (Secret(), "")):
        service = numbers(authenticate=lambda *_, principal=principal: principal)
        async with (
            serve(service, "memory://a", inspect=True),
            subscribe(f"memory://a/{MAP}", serializer="json") as stream,
        ):
            records = streams_in(await until_looked(stream))
        assert {each["principal"] for each in records if each["out"]} == {shown}


@pytest.mark.parametrize(
    ("spent", "changed", "inspectors", "seconds"),
    [
        (0.0, 0, 1, LOOK_SECONDS),
        (0.001, 10, 1, LOOK_SECONDS),
        (0.1, 0, 1, 0.1 / MOST_OF_A_CORE),
        (0.1, 0, 3, 0.3 / MOST_OF_A_CORE),
        (0.1, 1000, 1, (0.1 + 1000 * RECORD_SECONDS) / MOST_OF_A_CORE),
        (9.0, 0, 1, MOST_SECONDS),
    ],
)
def test_the_pause_after_a_look_bounds_what_inspectors_use(
    spent: float, changed: int, inspectors: int, seconds: float
) -> None:
    """Two per cent of a core for all together, with what the messages cost elsewhere."""
    assert pause_after(spent, changed, inspectors) == pytest.approx(seconds)


def test_a_message_has_a_bounded_number_of_streams() -> None:
    """A table of any size goes in pieces, and what has not changed does not go."""
    table = {str(key): {"key": str(key), "n": 0} for key in range(2 * RECORDS + 1)}
    sizes = [len(message["streams"]) for message in differences({}, table)]
    assert sizes == [RECORDS, RECORDS, 1]
    assert list(differences(table, dict(table))) == []
    many = {str(key): {"key": str(key)} for key in range(KEYS + 1)}
    assert [len(message["keys"]) for message in differences(many, {})] == [KEYS, 1]


async def test_the_map_of_a_worker_has_the_streams_of_all(autojump_clock) -> None:
    """With keys of their own, also those that a stream waits on. A stream that stands still does
    not change from look to look, and one that ends is gone.
    """
    group: dict[str, FakeWorker] = {}
    async with (
        worker("7", group, numbers(), "memory://one", Limits()),
        worker("8", group, numbers(), "memory://two", Limits()),
        connect("memory://two") as peer,
        subscribe(f"memory://one/{MAP}", serializer="json") as inspector,
    ):
        async with peer.subscribe("endless", demand=3) as stream:
            await anext(stream)
            await trio.sleep(1)
            found = by_key(await until_looked(inspector))
            (key,) = (
                each
                for each, fields in found.items()
                if each.startswith("8.") and fields["name"] == "endless" and fields["out"]
            )
            assert found[key]["delivered"] == 3
            for _ in range(3):
                await until_looked(inspector)
            assert key not in by_key(await until_looked(inspector))
        while key not in [
            gone
            for message in await until_looked(inspector)
            if message["kind"] == "gone"
            for gone in message["keys"]
        ]:
            pass


async def test_a_worker_that_hangs_is_left_out_of_the_look(autojump_clock) -> None:
    """The look comes nevertheless, and has the streams of the others."""
    group: dict[str, FakeWorker] = {}
    async with (
        worker("7", group, numbers(), "memory://one", Limits()),
        worker("8", group, numbers(), "memory://two", Limits()) as (_, other),
        subscribe(f"memory://one/{MAP}", serializer="json") as inspector,
    ):

        async def hang(_stream: object, _host: object) -> None:
            await trio.sleep_forever()

        other.answer(MAP, hang)
        for _ in range(3):
            messages = await until_looked(inspector)
        assert messages[-1]["streams"] > 0


def test_keys_of_another_worker_are_renamed_and_its_clock_is_translated() -> None:
    """A time that differs by less than half a second is the one that is known."""
    fields = {"key": "1s1", "on": ["1r2"], "since": 3.0, "name": "x"}
    found = renamed(fields, "8", 100.0, {})
    assert found == {"key": "8.1s1", "on": ["8.1r2"], "since": 103.0, "name": "x"}
    assert renamed(fields, "8", 100.3, {"8.1s1": found})["since"] == 103.0
    assert renamed(fields, "8", 100.8, {"8.1s1": found})["since"] == 103.8
