"""A log, published and read over connections: places, positions, refusals."""

import hashlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio
import trio.testing
from trio.testing import MockClock

import penstock
from penstock.api import NotAvailable, PositionNotRetained, PublisherFailed, Rejected, UsageError
from penstock.logs import DiskLog, Log, Retention, RingLog
from penstock.runtime import Peer, Service, connect, remote, serve, subscribe
from penstock.spi import StreamEnded, build_registry, hookimpl
from penstock.streams import collect

KEEP_ALL = Retention(max_count=1_000_000)
PROTOCOLS = ("rsio", "reactivesocket")


async def filled(
    count: int = 10, *, retention: Retention = KEEP_ALL, partitions: tuple[str, ...] = ("0",)
) -> RingLog:
    """Return a log with the elements 0, 1, 2, … in each partition."""
    log = RingLog(retention=retention, partitions=partitions)
    for partition in partitions:
        for number in range(count):
            await log.append([b"%d" % number], partition=partition)
    return log


def service_of(log: Log) -> Service:
    """Return a service with `log` under three names."""
    service = Service()
    service.publish("orders", log)

    @service.publisher("orders/{region}", log=log)
    def of_region(region: str) -> str | None:
        if region == "secret":
            raise NotAvailable("not yours")
        return None if region == "any" else region

    @service.publisher("made/{name}", log=True, addresses=["tcp://10.0.0.5:7000"])
    def made(name: str) -> Log:
        return log

    return service


@asynccontextmanager
async def peer_of(
    service: Service, protocol: str = "rsio", **options: object
) -> AsyncIterator[Peer]:
    """Serve, and connect with one protocol."""
    async with (
        serve(service, "memory://logs"),
        connect(f"{protocol}+memory://logs", **options) as peer,
    ):  # type: ignore[arg-type]  # any options
        await peer.wait_accepted()
        yield peer


async def numbers_of(peer: Peer, name: str, **places: object) -> list[int]:
    return [int(element) for element in await collect(peer.source(name, **places))]  # type: ignore[call-overload]  # any places


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_subscriber_chooses_where_it_starts_and_stops(
    protocol: str, autojump_clock: MockClock
) -> None:
    """As options and in the name, over both protocols: the same elements."""
    log = await filled()
    async with peer_of(service_of(log), protocol) as peer:
        assert await numbers_of(peer, "orders", start=3, stop=6) == [3, 4, 5]
        assert await numbers_of(peer, "orders?start=3&stop=6") == [3, 4, 5]
        assert await numbers_of(peer, "orders?start=3", stop=6) == [3, 4, 5]
        assert await numbers_of(peer, "orders", stop="latest") == list(range(10))
        assert await numbers_of(peer, "orders", start="latest", stop="latest") == []
        assert await numbers_of(peer, "orders?start=earliest&stop=2") == [0, 1]
        assert await numbers_of(peer, "orders?partition=0&start=10&stop=10") == []


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_stream_follows_the_log_and_knows_its_position(
    protocol: str, autojump_clock: MockClock
) -> None:
    """Without stop the stream waits for the next element;
    `position` is that of the element that the reader gets next.
    """
    log = await filled()
    async with (
        peer_of(service_of(log), protocol) as peer,
        peer.subscribe("orders", start=8) as stream,
    ):
        assert [await anext(stream), await anext(stream)] == [b"8", b"9"]
        assert stream.position == 10
        await log.append([b"10", b"11"])
        assert await anext(stream) == b"10"
        assert stream.position == 11


async def test_words_become_positions_by_the_answer_of_the_publisher(
    autojump_clock: MockClock,
) -> None:
    """The extension tells the first position also for words, and to a subscriber
    that names no place.
    """
    log = await filled(100, retention=Retention(max_count=40))
    earliest = log.earliest()["0"]
    assert earliest > 0
    async with peer_of(service_of(log)) as peer:
        for start in (None, "earliest"):
            async with peer.subscribe("orders", start=start) as stream:  # type: ignore[call-overload]  # a text for mypy
                assert int(await anext(stream)) == earliest
                assert stream.position == earliest + 1
        async with peer.subscribe("orders", start="latest") as stream:
            await trio.testing.wait_all_tasks_blocked()
            await log.append([b"100"])
            assert await anext(stream) == b"100"
            assert stream.position == 101


async def test_the_word_subscription_is_seen_by_the_service_and_ignored_by_the_log(
    autojump_clock: MockClock,
) -> None:
    """A reader has a name, so `may_open` and the access log know it;
    elements and positions are the same.
    """
    seen: list[str] = []
    service = Service(may_open=lambda name, peer: not seen.append(str(name)))  # type: ignore[func-returns-value]  # append, and allow
    service.publish("orders", await filled())
    async with peer_of(service) as peer:
        async with peer.subscribe("orders?start=8&subscription=nightly") as stream:
            assert await anext(stream) == b"8"
        assert (
            json.loads(await peer.request("orders?positions&subscription=nightly"))["0"]["latest"]
            == 10
        )
    assert seen == ["orders?start=8&subscription=nightly", "orders?positions=&subscription=nightly"]


async def test_a_stream_without_positions_has_none(autojump_clock: MockClock) -> None:
    """Over ReactiveSocket no answer comes for a word,
    and a publisher without a log has no positions.
    """
    service = service_of(await filled())

    @service.publisher("plain")
    async def plain() -> AsyncIterator[bytes]:
        yield b"element"

    async with (
        peer_of(service, "reactivesocket") as peer,
        peer.subscribe("orders", start="earliest") as stream,
    ):
        assert await anext(stream) == b"0"
        assert stream.position_if_known is None
    async with peer_of(service) as peer, peer.subscribe("plain") as stream:
        assert await anext(stream) == b"element"
        assert stream.position_if_known is None


class Observer:
    """A plugin that listens to streams."""

    @hookimpl
    def penstock_stream_ended(self, event: StreamEnded) -> None:
        """Take an event."""


async def test_positions_pass_a_serializer_and_an_observer(autojump_clock: MockClock) -> None:
    """The elements are read from JSON, and a plugin counts them;
    the stream knows its position too.
    """
    async with peer_of(service_of(await filled()), registry=build_registry([Observer()])) as peer:
        async with peer.subscribe("orders", start="earliest", type=int) as stream:
            assert [await anext(stream), await anext(stream)] == [0, 1]
            assert stream.position == 2
        assert await collect(peer.source("orders", start=3, stop=5, type=int)) == [3, 4]


async def test_the_function_of_a_publisher_chooses_the_partition_or_the_log(
    autojump_clock: MockClock,
) -> None:
    """A text is the partition, None leaves the choice to the subscriber,
    and with log=True the function returns the log.
    """
    log = await filled(3, partitions=("east", "west"))
    await log.append([b"3"], partition="west")
    async with peer_of(service_of(log)) as peer:
        assert await numbers_of(peer, "orders/west", start=2, stop="latest") == [2, 3]
        assert await numbers_of(peer, "orders/any?partition=west", start=2, stop="latest") == [2, 3]
        assert await numbers_of(peer, "made/x?partition=east", start=2, stop="latest") == [2]


REFUSED = [
    (
        "orders/east",
        {"start": 4},
        (
            "partition 'east' does not have position 4; it has 0 up to, and not with, 3. It does "
            "not exist yet"
        ),
    ),
    (
        "orders/west",
        {"start": 2},
        (
            "partition 'west' does not have position 2; it has 7 up to, and not with, 10. It was "
            "dropped"
        ),
    ),
    ("orders/east?start=-1", {}, "start=-1 is negative; positions begin at 0"),
    ("orders/east?start=soon", {}, "start='soon' is no position, 'earliest' or 'latest'"),
    ("orders/east?start=1&start=2", {}, "start is given 2 times"),
    ("orders/east?start=3&stop=1", {}, "the stream would start at 3, behind its stop at 1"),
    (
        "orders/east?partition=west",
        {},
        "partition='west', and this name leads to partition 'east' only",
    ),
    ("orders/any?partition=north", {}, "the log has no partition 'north'; it has ['east', 'west']"),
    ("orders/any", {}, "name one, as in ?partition=east"),
    ("orders/east?start=99999999999999999999", {}, "is no position"),
    ("orders/any?positions&start=1", {}, "?positions is one element about all that the log has"),
    ("orders/any?positions&after=1", {}, "the log has no partition ''"),
    ("orders/any?positions&after=east:x", {}, "after='x' is no position"),
    ("orders/any?positions&digests=east:x", {}, "digests='x' is no position"),
    ("orders/any?positions&digests=north:1", {}, "the log has no partition 'north'"),
    ("orders/east?digests=1", {}, "digests belongs to ?positions"),
    ("orders/east?at=1", {}, "at belongs to ?positions"),
    ("orders/east?positions&times", {}, "?positions is one element about all that the log has"),
    ("orders/any?positions&at=soon", {}, "at='soon': 'soon' is no time"),
    (
        "orders/any?positions&at=2026-07-01T10:00:00+02:00",
        {},
        "or seconds since 1970. In a name + is written %2B",
    ),
    ("orders/any?positions&at=2026-07-01T10:00:00", {}, "has no time zone"),
    ("orders/any?times", {}, "name one, as in ?partition=east"),
    ("orders/east?times=1", {}, "?times is a word without a value"),
    ("orders/east?times&start=99", {}, "partition 'east' does not have position 99"),
    ("orders/east?times&start=2&stop=99", {}, "partition 'east' does not have position 99"),
    ("orders/any?positions&timeout=1", {}, "timeout bounds the wait of after="),
    (
        "orders/any?positions&after=east:1&timeout=soon",
        {},
        "timeout='soon'; give seconds from 0 to 3600",
    ),
    (
        "orders/any?positions&after=east:1&timeout=3601",
        {},
        "timeout='3601'; give seconds from 0 to 3600",
    ),
    (
        "orders/any?positions&after=east:1&timeout=nan",
        {},
        "timeout='nan'; give seconds from 0 to 3600",
    ),
    ("orders/any?partition=east&after=1", {}, "after belongs to ?positions"),
]


@pytest.mark.parametrize(("name", "places", "text"), REFUSED)
@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_place_that_does_not_fit_is_refused_with_the_figures_of_the_log(
    protocol: str, name: str, places: dict[str, int], text: str, autojump_clock: MockClock
) -> None:
    """The subscriber learns its mistake and the positions of the log;
    nothing is reported at the server.
    """
    log = await filled(3, retention=Retention(max_count=3), partitions=("east", "west"))
    for number in range(7):
        await log.append([b"%d" % number], partition="west")
    async with peer_of(service_of(log), protocol) as peer:
        with pytest.raises((Rejected, PublisherFailed)) as refused:
            await numbers_of(peer, name, **places)
        assert text in str(refused.value)


async def test_a_denied_name_says_nothing_about_its_words(autojump_clock: MockClock) -> None:
    """The function of the publisher runs before the words are judged."""
    async with peer_of(service_of(await filled())) as peer:
        with pytest.raises(Rejected, match="no such publisher"):
            await numbers_of(peer, "orders/secret?start=soon")


async def test_a_reader_that_falls_behind_learns_what_is_retained(
    autojump_clock: MockClock,
) -> None:
    """The log drops elements that the stream has not requested yet:
    it fails with the retained range.
    """
    log = await filled(10, retention=Retention(max_count=64))
    async with (
        peer_of(service_of(log)) as peer,
        peer.subscribe("orders", demand=1, start=0) as stream,
    ):
        assert await anext(stream) == b"0"
        for number in range(10_000):
            await log.append([b"%d" % number])
        with pytest.raises(
            PublisherFailed, match=r"it has [\d,]+ up to, and not with, 10,010. It was dropped"
        ):
            async for _ in stream:
                pass


async def test_positions_of_all_partitions_in_one_element(autojump_clock: MockClock) -> None:
    """`?positions` is one JSON element, and with after= it waits for an element,
    or for its timeout.
    """
    log = await filled(3, partitions=("east", "west"))
    async with peer_of(service_of(log)) as peer:

        async def positions(name: str) -> object:
            return json.loads(await peer.request(name))

        east = {"earliest": 0, "latest": 3, "addresses": []}
        assert await positions("orders/any?positions") == {"east": east, "west": east}
        assert await positions("orders/east?positions") == {"east": east}
        assert (await positions("made/x?positions&partition=west")) == {
            "west": {**east, "addresses": ["tcp://10.0.0.5:7000"]}
        }
        assert await positions("orders/any?positions&after=east:2,west:9") == {
            "east": east,
            "west": east,
        }
        async with trio.open_nursery() as nursery:

            @nursery.start_soon
            async def append_later() -> None:
                await trio.sleep(5)
                await log.append([b"3"], partition="east")

            assert await positions("orders/east?positions&after=3") == {
                "east": {**east, "latest": 4}
            }
            assert trio.current_time() == pytest.approx(5)
        assert await positions("orders/east?positions&after=4&timeout=7") == {
            "east": {**east, "latest": 4}
        }
        assert trio.current_time() == pytest.approx(12)


@pytest.mark.parametrize("kind", [RingLog, DiskLog])
async def test_the_digests_of_elements_come_with_the_positions(kind: Any, tmp_path: Path) -> None:
    """Each partition that is asked for has the digest of the element before its position. If the
    log has nothing before a position, the digest is empty.
    """
    names = [f"p{number}" for number in range(5)]
    more = {"path": tmp_path / "log"} if kind is DiskLog else {}
    log = kind(**more, retention=Retention(max_count=8), partitions=names)
    async with log if kind is DiskLog else nullcontext():
        for name in names[:3]:
            for number in range(20):
                await log.append([b"%d" % number], partition=name)
        async with peer_of(service_of(log)) as peer:
            asked = "digests=p0:20,p1:19,p2:3,p3:0,p4:1"
            answer = json.loads(await peer.request(f"orders/any?positions&{asked}"))
            assert {name: each["digest"] for name, each in answer.items()} == {
                "p0": hashlib.sha256(b"19").hexdigest()[:16],
                "p1": hashlib.sha256(b"18").hexdigest()[:16],
                "p2": "",
                "p3": "",
                "p4": "",
            }
            one = json.loads(await peer.request("orders/any?positions&digests=p1:18"))
            assert list(one) == ["p1"]
            assert one["p1"]["latest"] == 20


@pytest.mark.parametrize("kind", [RingLog, DiskLog])
async def test_the_times_of_elements_are_told(kind: Any, tmp_path: Path) -> None:
    """The position of a time comes with the positions, and the times of a range as one element. The
    client of a URL asks for the position of a time.
    """
    now = [1_000.0]
    more = {"path": tmp_path / "log"} if kind is DiskLog else {}
    log = kind(**more, retention=KEEP_ALL, partitions=["east", "west"], clock=lambda: now[0])
    async with log if kind is DiskLog else nullcontext():
        for _ in range(3):
            await log.append([b"x", b"y"], partition="east")
            now[0] += 10
        async with peer_of(service_of(log)) as peer:
            found = json.loads(await peer.request("orders?positions&at=1010"))
            assert {name: each["at"] for name, each in found.items()} == {"east": 2, "west": 0}
            asked = "orders?positions&at=1970-01-01T00:16:41Z&digests=east:6"
            found = json.loads(await peer.request(asked))
            assert list(found) == ["east"]
            assert found["east"]["at"] == 2
            assert found["east"]["digest"] != ""
            times = json.loads(await peer.request("orders/east?times&start=1"))
            assert times == [[1, 2, 1_000.0], [2, 4, 1_010.0], [4, 6, 1_020.0]]
            times = json.loads(await peer.request("orders/east?times&start=3&stop=4"))
            assert times == [[3, 4, 1_010.0]]
            assert json.loads(await peer.request("orders/west?times")) == []
            with pytest.raises(UsageError, match="name one"):
                await penstock.position_at("memory://logs/orders", 1_005)
        async with serve(service_of(log), "memory://logs"):
            for url, publisher in (
                ("memory://logs/orders?partition=east", None),
                ("memory://logs", "orders/east"),
            ):
                named = {} if publisher is None else {"publisher": publisher}
                assert await penstock.position_at(url, 1_005, **named) == 2


async def test_each_partition_may_have_its_addresses(autojump_clock: MockClock) -> None:
    """A partition that is not named has no addresses: it is read from the server that was asked."""
    log, service = await filled(partitions=("east", "west")), Service()

    @service.publisher("orders", log=log, addresses={"east": iter(["tcp://east:1"])})
    def orders() -> None:
        return None

    async with peer_of(service) as peer:
        for _ in range(2):
            found = json.loads(await peer.request("orders?positions"))
            assert found["east"]["addresses"] == ["tcp://east:1"]
            assert found["west"]["addresses"] == []


@attrs.define
class Trade:
    price: int


async def test_a_typed_log_tells_what_its_elements_are(autojump_clock: MockClock) -> None:
    """Its bytes are sent unchanged, and a subscriber may still ask for bytes. The positions are
    JSON for each type, and no element.
    """
    log = RingLog(retention=Retention(max_count=100))
    await log.append([b'{"price":1}', b'{"price":2}'])
    service = Service(describe=True)
    service.publish("trades", log, type=Trade)
    service.publish("told", log, serializer="text")
    async with peer_of(service) as peer:
        async with peer.subscribe("trades", type=Trade, stop="latest") as stream:
            assert [each async for each in stream] == [Trade(1), Trade(2)]
        async with peer.subscribe("trades?stop=1", serializer="bytes") as stream:
            assert [each async for each in stream] == [b'{"price":1}']
        async with peer.subscribe("trades?stop=1") as stream:
            assert [each async for each in stream] == [{"price": 1}]
        async with peer.subscribe("penstock/describe", serializer="json") as stream:
            entries = {entry["name"]: entry async for entry in stream}
        assert entries["trades"]["elements"] == "Trade"
        assert entries["trades"]["serializer"] == "json"
        assert entries["trades"]["positions"] is True
        assert entries["trades"]["summary"] == ""
        assert (await peer.request("told?positions", type=dict))["0"]["latest"] == 2
        with pytest.raises(UsageError, match="the publisher announces 'text'"):
            async with peer.subscribe("told", serializer="json") as stream:
                assert [each async for each in stream] == []


async def test_a_log_is_read_in_the_process_in_the_same_way(autojump_clock: MockClock) -> None:
    """`subscribe(log, start=)` takes the same places, and its stream has the same position."""
    log = await filled(partitions=("east", "west"))
    async with subscribe(log, partition="west", start=4, stop="latest") as stream:
        assert stream.position == 4
        assert await anext(stream) == b"4"
        assert stream.position == 5
        assert [batch async for batch in stream.batches()] == [[b"5", b"6", b"7", b"8", b"9"]]
        assert stream.position == 10
    with pytest.raises(PositionNotRetained):
        async with subscribe(log, partition="west", start=11) as stream:
            await anext(stream)
    with pytest.raises(UsageError, match="no option 'begin'"):
        subscribe(log, begin=4)  # type: ignore[call-overload]  # the mistake that is tested


async def test_places_that_are_none_are_refused_at_the_call(autojump_clock: MockClock) -> None:
    """Before anything is sent: a negative number, another word, a place
    that the name has as well.
    """
    async with peer_of(service_of(await filled())) as peer:
        for wrong in (-1, "soon", True, 1.5):
            with pytest.raises(UsageError, match="give a position from 0"):
                peer.subscribe("orders", start=wrong)  # type: ignore[call-overload]  # the mistake that is tested
        with pytest.raises(UsageError, match="give it once"):
            peer.subscribe("orders?stop=3", stop=4)
    with pytest.raises(UsageError, match="give a position from 0"):
        remote("memory://logs/orders", start=-1)


def test_what_a_publisher_with_a_log_cannot_have() -> None:
    """Each is refused when the publisher is added."""
    service, log = Service(), RingLog(retention=KEEP_ALL)

    async def streams() -> AsyncIterator[bytes]:
        yield b""

    def start_of(start: int) -> None:
        return None

    with pytest.raises(UsageError, match="give a Log"):
        service.publisher("a", log=5)  # type: ignore[arg-type]  # the mistake that is tested
    with pytest.raises(UsageError, match="addresses="):
        service.publisher("a", log=log, addresses="tcp://one")
    with pytest.raises(UsageError, match="addresses="):
        service.publisher("a", log=log, addresses={"0": "tcp://one"})
    with pytest.raises(UsageError, match="yields nothing"):
        service.publisher("a", log=log)(streams)
    with pytest.raises(UsageError, match="'start' belongs to the log"):
        service.publisher("a", log=log)(start_of)
    with pytest.raises(UsageError, match="leave element_size"):
        service.publish("a", log, element_size=8)
    assert service.names() == []


async def test_a_function_that_returns_something_else_is_a_fault_of_the_program(
    autojump_clock: MockClock,
) -> None:
    """The peer is told no more than that the publisher failed; the program gets the error."""
    faults: list[Exception] = []
    service = Service()

    @service.publisher("a", log=True)
    def nothing() -> None:
        return None

    @service.publisher("b", log=await filled())
    def unknown() -> str:
        return "north"

    async with (
        serve(service, "memory://logs", on_violation=faults.append),
        connect("memory://logs") as peer,
    ):
        for name in ("a", "b"):
            with pytest.raises((Rejected, PublisherFailed)):
                await numbers_of(peer, name)
    assert [type(fault) for fault in faults] == [UsageError, UsageError]
    assert penstock.Log is Log


async def log_with_reader(**bounds: int) -> Log:
    log = RingLog(retention=Retention(max_count=800, acknowledged=True))
    await log.add_reader("nightly", **(bounds or {"max_count": 700}))
    for number in range(10):
        await log.append([b"%d" % number])
    return log


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_reader_goes_on_where_it_has_acknowledged(
    protocol: str, autojump_clock: MockClock
) -> None:
    """By its name, over both protocols. An explicit start counts before that."""
    log = await log_with_reader()
    async with peer_of(service_of(log), protocol) as peer:
        assert await numbers_of(peer, "orders?reader=nightly", stop="latest") == list(range(10))
        answer = await peer.request("orders?reader=nightly&acknowledge=6")
        assert json.loads(answer) == {"0": 6}
        assert log.reader("nightly").positions() == {"0": 6}
        assert await numbers_of(peer, "orders?reader=nightly", stop="latest") == [6, 7, 8, 9]
        assert await numbers_of(peer, "orders?reader=nightly", start=8, stop=9) == [8]
        # A smaller position changes nothing, as for the log.
        assert json.loads(await peer.request("orders?reader=nightly&acknowledge=2")) == {"0": 6}
        known = json.loads(await peer.request("orders?positions&reader=nightly"))
        assert (known["0"]["acknowledged"], known["0"]["latest"]) == (6, 10)
        async with peer.subscribe("orders?reader=nightly") as stream:
            assert await anext(stream) == b"6"
            if protocol == "rsio":  # the other one tells no first position
                assert stream.position == 7


async def test_a_reader_acknowledges_several_partitions_at_once(
    autojump_clock: MockClock,
) -> None:
    """As `after` names them."""
    log = await filled(partitions=("east", "west"))
    await log.add_reader("nightly")
    async with peer_of(service_of(log)) as peer:
        answer = await peer.request("orders?reader=nightly&acknowledge=east:3,west:4")
        assert json.loads(answer) == {"east": 3, "west": 4}
        answer = await peer.request("orders/west?reader=nightly&acknowledge=5")
        assert json.loads(answer) == {"east": 3, "west": 5}
        assert await numbers_of(peer, "orders/east?reader=nightly", stop=5) == [3, 4]


async def test_a_reader_of_some_partitions_is_refused_for_others(
    autojump_clock: MockClock,
) -> None:
    """With those that it reads."""
    log = await filled(partitions=("east", "west"))
    await log.add_reader("nightly", partitions=["east"])
    async with peer_of(service_of(log)) as peer:
        for name in ("orders/west?reader=nightly", "orders?reader=nightly&acknowledge=west:1"):
            with pytest.raises(Rejected, match=r"reads \['east'\], and not partition 'west'"):
                await numbers_of(peer, name)
        known = json.loads(await peer.request("orders?positions&reader=nightly"))
        assert known["east"]["acknowledged"] == 0
        assert "acknowledged" not in known["west"]


async def test_a_peer_makes_and_removes_no_reader(autojump_clock: MockClock) -> None:
    """It would hold the disk of another by names that it invents. The others are not told."""
    log = await log_with_reader()
    async with peer_of(service_of(log)) as peer:
        for name in (
            "orders?reader=x",
            "orders?reader=x&acknowledge=1",
            "orders?positions&reader=x",
        ):
            with pytest.raises(
                Rejected, match="no reader 'x': the program that has the log"
            ) as told:
                await numbers_of(peer, name)
            assert "nightly" not in str(told.value)
    assert log.readers == ("nightly",)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("acknowledge=5", "acknowledge= needs reader="),
        ("reader=nightly&acknowledge=11", "does not have position 11"),
        ("reader=nightly&acknowledge=x", "acknowledge='x' is no position"),
        ("reader=nightly&acknowledge=-1", "acknowledge=-1 is negative"),
        ("reader=nightly&acknowledge=1&start=2", "leave start= out"),
        ("reader=nightly&acknowledge=north:1", "no partition 'north'"),
        ("reader=nightly&reader=nightly", "is given 2 times"),
        ("reader=nightly&acknowledge=1&after=2", "leave after= out"),
    ],
)
async def test_a_mistake_of_a_reader_is_refused(
    words: str, text: str, autojump_clock: MockClock
) -> None:
    """With what is allowed, and nothing is acknowledged."""
    log = await log_with_reader()
    async with peer_of(service_of(log)) as peer:
        with pytest.raises(Rejected, match=text):
            await numbers_of(peer, f"orders?{words}")
    assert log.reader("nightly").positions() == {"0": 0}


async def test_the_ends_of_a_log_are_words_for_a_position(autojump_clock: MockClock) -> None:
    """They are those of the partition that is named, or of each one that the reader reads."""
    log = RingLog(retention=Retention(max_count=9), partitions=("east", "west", "north"))
    reader = await log.add_reader("nightly", partitions=["east", "west"])
    for partition in log.partitions:
        await log.append([b"x"] * 4, partition=partition)
    async with peer_of(service_of(log)) as peer:
        for name, expected in (
            ("orders?partition=east&acknowledge=latest", {"east": 4, "west": 0}),
            ("orders?acknowledge=latest", {"east": 4, "west": 4}),
        ):
            answer = await peer.request(f"{name}&reader=nightly")
            assert json.loads(answer) == reader.positions() == expected
        with pytest.raises(Rejected, match="not partition 'north'"):
            await peer.request("orders?partition=north&acknowledge=latest&reader=nightly")


async def test_a_reader_that_was_dropped_learns_what_it_lost(autojump_clock: MockClock) -> None:
    """And the name that goes on without it."""
    log = await log_with_reader(max_count=5)
    await log.add_reader("alive", start="latest", max_count=700)
    await log.append([b"10"])
    async with peer_of(service_of(log)) as peer:
        with pytest.raises(
            Rejected, match=r"are lost to it.*ask for .reader=nightly&acknowledge=10"
        ):
            await numbers_of(peer, "orders?reader=nightly")
        assert json.loads(await peer.request("orders?reader=nightly&acknowledge=earliest")) == {
            "0": 10
        }
        assert await numbers_of(peer, "orders?reader=nightly", stop="latest") == [10]
        await peer.request("orders?reader=nightly&acknowledge=latest")
        assert await numbers_of(peer, "orders?reader=nightly", stop="latest") == []


async def test_may_open_decides_who_acknowledges(autojump_clock: MockClock) -> None:
    """It sees the words of the name."""
    log = await log_with_reader()
    service = Service(may_open=lambda name, peer: "acknowledge" not in str(name))
    service.publish("orders", log)
    async with peer_of(service) as peer:
        assert await numbers_of(peer, "orders?reader=nightly", stop=1) == [0]
        with pytest.raises(Rejected):
            await peer.request("orders?reader=nightly&acknowledge=6")
    assert log.reader("nightly").positions() == {"0": 0}
