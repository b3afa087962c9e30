"""The plan of a query, with a publisher that a test sets:
shares, limits, loss, other content, AvailableNow.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pytest
from penstock_spark.source._counted_plan import CountedPlan
from penstock_spark.source._offsets import (
    ENOUGH,
    TASKS,
    Facts,
    Key,
    Offset,
    Range,
    pack_into_tasks,
    ranges_between,
    read_places,
    share,
    share_bytes,
)
from penstock_spark.source._plan import Plan
from penstock_spark.source._settings import SourceSettings

from penstock.api import UsageError

EAST, WEST = ("orders", "east"), ("orders", "west")
HOT = {
    "uri": "tcp://127.0.0.1:1",
    "stream": "orders",
    "delivery": "atMostOnce",
    "maxElementsPerTrigger": "10",
}


class KnownPublisher:
    """A publisher whose positions a test sets.
    The digest of an element is a function of its position and of `content`.
    """

    def __init__(self, facts: Mapping[Key, Facts]) -> None:
        self.known = dict(facts)
        self.epoch = 1
        self.content = "first"
        self.waits: list[float] = []
        self.after: Mapping[Key, int] | None = None
        self.described: tuple[str, ...] = ()
        self.is_complete = True
        self.size = 10.0

    def facts(
        self, streams: Sequence[str], *, after: Mapping[Key, int] | None = None, wait: float = 0.0
    ) -> dict[Key, Facts]:
        self.waits.append(wait)
        self.after = after
        return {key: each for key, each in self.known.items() if key[0] in streams}

    def has_positions(self, stream: str) -> bool:
        return any(key[0] == stream for key in self.known)

    def names(self, pattern: str) -> tuple[str, ...]:
        return self.described

    def digests(self, places: Mapping[Key, int]) -> dict[Key, str]:
        return {key: self.digest(*key, position) for key, position in places.items()}

    def digest(self, stream: str, partition: str, position: int) -> str:
        """Return the digest of the element before a position."""
        text = f"{self.content} {stream} {partition} {position}"
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def positions_at(self, keys: Iterable[Key], time: float) -> dict[Key, int]:
        """An element a second."""
        found = {key: max(self.known[key].earliest, int(time)) for key in keys}
        if self.grows:
            self.known = {
                key: facts._replace(earliest=facts.earliest + 1, latest=facts.latest + 9)
                for key, facts in self.known.items()
            }
        return {key: min(self.known[key].latest, place) for key, place in found.items()}

    grows = False

    def mean_size(self, stream: str, partition: str, start: int, stop: int) -> float:
        return self.size

    def close(self) -> None:
        """Do nothing."""


def plan_of(publisher: KnownPublisher, now: list[float] | None = None, **options: str) -> Plan:
    """Return a plan over one stream. `now` holds the time."""
    given = {"uri": "tcp://127.0.0.1:1", "stream": "orders"} | options
    if {"streams", "streamPattern", "assign"} & options.keys():
        del given["stream"]
    return Plan(SourceSettings.of(given), publisher, lambda: (now or [0.0])[0])  # type: ignore[arg-type]  # it has the same methods


def test_a_share_is_in_proportion_and_uses_all_of_the_limit() -> None:
    """The limit may be lower than the number of partitions."""
    assert share({EAST: 300, WEST: 100}, 40) == {EAST: 30, WEST: 10}
    assert share({EAST: 300, WEST: 100}, 1000) == {EAST: 300, WEST: 100}
    assert share({EAST: 3, WEST: 3}, 1) == {EAST: 1, WEST: 0}
    assert sum(share({("s", str(number)): number for number in range(1, 50)}, 501).values()) == 501


def test_bytes_are_kept_by_the_mean_size() -> None:
    """At least one element is read, also if it is larger than the limit."""
    assert share_bytes({EAST: 100, WEST: 100}, {EAST: 10.0, WEST: 10.0}, 500) == {
        EAST: 25,
        WEST: 25,
    }
    assert share_bytes({EAST: 1}, {EAST: 10.0}, 5) == {EAST: 1}
    assert share_bytes({EAST: 9}, {EAST: 10.0}, 90) == {EAST: 9}


def test_ranges_are_cut_into_at_least_as_many_parts() -> None:
    """The parts are next to each other, and the last one has the digest."""
    start, end = Offset({EAST: 0, WEST: 0}), Offset({EAST: 300, WEST: 100}, {EAST: "digest"})
    assert len(ranges_between(start, end, 1)) == 2
    parts = ranges_between(start, end, 8)
    assert [(part.start, part.stop) for part in parts if part.partition == "east"] == [
        (50 * at, 50 * at + 50) for at in range(6)
    ]
    assert len(parts) == 8
    assert [part.digest for part in parts if part.partition == "east"] == [
        "",
        "",
        "",
        "",
        "",
        "digest",
    ]
    assert ranges_between(end, end, 8) == []
    assert len(ranges_between(Offset({EAST: 0}), Offset({EAST: 3}), 100)) == 3


def of_streams(counts: Sequence[int]) -> list[tuple[Range, tuple[str, ...]]]:
    return [
        (Range(f"s{number}", "0", 5, 5 + count), ("tcp://a",))
        for number, count in enumerate(counts)
    ]


@pytest.mark.parametrize(
    ("counts", "least", "tasks"),
    [
        pytest.param([1] * 1_000, 1, 33, id="one element each"),
        pytest.param([100] * 2_000, 1, 33, id="small ones"),
        pytest.param([100] * 2_000, 100, 100, id="minPartitions"),
        pytest.param([1_000_000, *[1] * 199], 1, 2, id="a large one and small ones"),
        pytest.param([*[1] * 100, 1_000_000, *[1] * 99], 1, 2, id="a large one between small ones"),
        pytest.param([1_000_000, *[1] * 199], 3, 200, id="too few tasks would be left"),
        pytest.param([ENOUGH // 2] * 1_000, 1, 500, id="two make enough"),
        pytest.param([ENOUGH + 1] * 100, 1, 100, id="large ones"),
        pytest.param([1] * TASKS, 1, TASKS, id="few"),
        pytest.param(
            [1_000_000, *[1] * (TASKS - 1)], 1, TASKS, id="few, a large one and small ones"
        ),
        pytest.param([1, 1], 1, 2, id="two"),
        pytest.param([], 1, 0, id="none"),
    ],
)
def test_small_ranges_share_a_task(counts: list[int], least: int, tasks: int) -> None:
    """Each range is in one task, and no task with several has more than is enough."""
    ranges = of_streams(counts)
    found = pack_into_tasks(ranges, least)
    assert len(found) == tasks
    assert sorted(part for parts, _ in found for part in parts) == sorted(
        part for part, _ in ranges
    )
    for parts, _ in found:
        assert len(parts) == 1 or sum(each.stop - each.start for each in parts) <= ENOUGH


def test_ranges_at_different_addresses_do_not_share_a_task() -> None:
    """A task has one connection."""
    ranges = [
        (part, (f"tcp://{number % 2}",)) for number, (part, _) in enumerate(of_streams([1] * 1_000))
    ]
    found = pack_into_tasks(ranges, 1)
    addresses = dict(ranges)
    assert all(addresses[part] == where for parts, where in found for part in parts)
    assert len(found) == 34


def test_offsets_are_what_spark_keeps() -> None:
    """The same offset has the same text, and one of another source is refused."""
    digest = "00112233445566ff"
    offset = Offset({WEST: 2, EAST: 1}, {EAST: digest}, {WEST: 1})
    assert offset.to_json() == {
        "penstock": 2,
        "positions": {"orders": {"east": 1, "west": 2}},
        "digests": {"orders": "ABEiM0RVZv8AAAAAAAAAAA=="},
        "begins": {"orders": {"west": 1}},
    }
    assert Offset.from_json(offset.to_json()) == offset
    shuffled = offset.to_json() | {"positions": {"orders": {"west": 2, "east": 1}}}
    assert Offset.from_json(shuffled) == offset
    version_1 = offset.to_json() | {"penstock": 1, "digests": {"orders": {"east": digest}}}
    assert Offset.from_json(version_1) == offset
    for foreign in ({"orders": {"0": 5}}, {"penstock": 3, "positions": {}}, "5", None):
        with pytest.raises(UsageError, match="checkpointLocation of its own"):
            Offset.from_json(foreign)
    for damaged in (
        {"penstock": 1},
        {"penstock": 1, "positions": {"orders": 5}},
        {"penstock": 1, "positions": {"a": {"b": "c"}}},
        {"penstock": 2, "positions": {"a": {"b": 1}}, "digests": {"a": "AAAA"}},
        {"penstock": 2, "positions": {"a": {"b": 1}}, "digests": {"c": "ABEiM0RVZv8="}},
        {"penstock": 2, "positions": {"a": {"b": 1}}, "digests": {"a": "ABEiM0RVZv8AAAAAAAAAAA=="}},
    ):
        with pytest.raises(UsageError, match="damaged"):
            Offset.from_json(damaged)


def test_an_offset_has_28_bytes_for_a_partition() -> None:
    """As Spark writes it. Without the one text for all digests it was 43."""
    keys = [("orders", str(number)) for number in range(10_000)]
    digests = {key: f"{number:016x}" for number, key in enumerate(keys, 1)}
    offset = Offset(dict.fromkeys(keys, 1_234_567), digests)
    assert len(json.dumps(offset.to_json())) < 285_000
    assert Offset.from_json(offset.to_json()) == offset


def test_places_are_words_numbers_and_those_of_kafka() -> None:
    """A partition that does not exist is refused, and the error has those that do."""
    facts = {EAST: Facts(3, 9), WEST: Facts(0, 5)}
    assert read_places({"orders": {"east": -1, "west": "earliest"}}, facts, "startingOffsets") == {
        EAST: 9,
        WEST: 0,
    }
    assert read_places({"orders": {"east": 4, "west": -2}}, facts, "startingOffsets") == {
        EAST: 4,
        WEST: 0,
    }
    with pytest.raises(UsageError, match="orders/east, orders/west"):
        read_places({"orders": {"north": 1}}, facts, "startingOffsets")
    for wrong in (True, -3, 1.5, "soon", None, [1]):
        with pytest.raises(UsageError, match="is no position"):
            read_places({"orders": {"east": wrong}}, facts, "startingOffsets")


def test_a_query_begins_where_its_option_says() -> None:
    """Partitions that JSON does not name begin at the earliest element;
    so do those that appear later.
    """
    publisher = KnownPublisher({EAST: Facts(3, 9), WEST: Facts(0, 5)})
    assert plan_of(publisher).initial("latest").positions == {EAST: 9, WEST: 5}
    assert plan_of(publisher, startingOffsets="earliest").initial("latest").positions == {
        EAST: 3,
        WEST: 0,
    }
    plan = plan_of(publisher, startingOffsets='{"orders": {"west": 4}}')
    assert plan.initial("latest").positions == {EAST: 3, WEST: 4}
    publisher.known[WEST] = Facts(0, 50)
    assert plan.initial("latest").positions == {EAST: 3, WEST: 4}
    publisher.known["orders", "north"] = Facts(2, 6)
    end = plan.latest(plan.initial("latest"))
    assert end.begins == {("orders", "north"): 2}
    publisher.known["orders", "north"] = Facts(4, 6)
    assert Range("orders", "north", 2, 6, end.digests["orders", "north"]) in [
        part for part, _ in plan.ranges(plan.initial("latest"), end)
    ]


def test_a_batch_ends_at_the_limit_and_has_digests() -> None:
    """Partitions that a batch does not touch keep theirs, and nothing new means the same offset."""
    publisher = KnownPublisher({EAST: Facts(0, 300), WEST: Facts(0, 100)})
    plan = plan_of(publisher, maxElementsPerTrigger="40", startingOffsets="earliest")
    first = plan.latest(plan.initial("latest"))
    assert first.positions == {EAST: 30, WEST: 10}
    assert first.digests == {
        EAST: publisher.digest("orders", "east", 30),
        WEST: publisher.digest("orders", "west", 10),
    }
    assert plan.latest(first, is_limited=False).positions == {EAST: 300, WEST: 100}
    publisher.known = {EAST: Facts(0, 31), WEST: Facts(0, 10)}
    second = plan.latest(first)
    assert second.digests[WEST] == first.digests[WEST]
    assert plan.latest(second) is second
    assert publisher.after == second.positions  # the server answers at once if there is more
    assert plan.newest() == Offset({EAST: 31, WEST: 10})


def test_bytes_bound_a_batch() -> None:
    """By the mean size of a sample, beside the number of elements."""
    publisher = KnownPublisher({EAST: Facts(0, 300)})
    plan = plan_of(
        publisher,
        maxBytesPerTrigger="1000",
        maxElementsPerTrigger="200",
        startingOffsets="earliest",
    )
    assert plan.latest(plan.initial("latest")).positions == {EAST: 100}
    publisher.size = 1.0
    assert plan.latest(plan.initial("latest")).positions == {EAST: 200}


def test_a_batch_waits_for_the_least_number_but_not_for_longer_than_the_delay() -> None:
    """The first batch and AvailableNow do not wait."""
    publisher, now = KnownPublisher({EAST: Facts(0, 5)}), [100.0]
    plan = plan_of(
        publisher,
        now,
        minElementsPerTrigger="10",
        maxTriggerDelay="15m",
        startingOffsets="earliest",
    )
    first = plan.latest(plan.initial("latest"))
    assert first.positions == {EAST: 5}
    publisher.known = {EAST: Facts(0, 14)}
    assert plan.latest(first) is first
    assert publisher.after == {EAST: 5}
    assert plan.latest(first) is first
    # So the server holds the question until there are more than these.
    assert publisher.after == {EAST: 14}
    now[0] += 900.0
    assert plan.latest(first).positions == {EAST: 14}
    now[0] += 1.0
    publisher.known = {EAST: Facts(0, 15)}
    fourteen = Offset({EAST: 14})
    assert plan.latest(fourteen) is fourteen
    publisher.known = {EAST: Facts(0, 24)}
    assert plan.latest(fourteen).positions == {EAST: 24}
    plan.fix_target()
    assert plan.latest(Offset({EAST: 23})).positions == {EAST: 24}


def test_available_now_does_not_go_beyond_its_beginning() -> None:
    """Elements that arrive meanwhile are for the next run; no poll is held."""
    publisher = KnownPublisher({EAST: Facts(0, 50)})
    plan = plan_of(publisher, maxElementsPerTrigger="40", startingOffsets="earliest")
    offset = plan.initial("latest")
    plan.fix_target()
    publisher.known = {EAST: Facts(0, 500)}
    reached = []
    while (after := plan.latest(offset)) is not offset:
        offset = after
        reached.append(offset.positions[EAST])
    assert reached == [40, 50]
    assert set(publisher.waits) == {0.0}


LOST: list[tuple[Facts, str, int]] = [
    (
        Facts(20, 30),
        (
            "has position 10 of partition 'east' of 'orders', and the publisher has 20 up to, and "
            "not with, 30.*were dropped"
        ),
        20,
    ),
    (Facts(0, 5), "the publisher has 0 up to, and not with, 5.*begun anew", 0),
]


@pytest.mark.parametrize(("facts", "text", "goes_on"), LOST)
def test_lost_elements_end_the_query_unless_the_option_says_otherwise(
    facts: Facts, text: str, goes_on: int
) -> None:
    """With failOnDataLoss=false the next batch begins where the publisher has elements,
    also when it is read again.
    """
    publisher = KnownPublisher({EAST: facts, WEST: Facts(0, 9)})
    start = Offset({EAST: 10, WEST: 0})
    with pytest.raises(UsageError, match=text):
        plan_of(publisher).latest(start)
    end = plan_of(publisher, failOnDataLoss="false").latest(start)
    assert end.begins == {EAST: goes_on}
    assert [
        (part.start, part.stop)
        for part in ranges_between(start, end, 1)
        if part.partition == "east"
    ] == ([(goes_on, facts.latest)])


@pytest.mark.parametrize(
    ("latest", "content"), [(0, "second"), (5, "second"), (10, "second"), (90, "second")]
)
def test_a_log_that_has_begun_anew_is_read_once_from_its_beginning(
    latest: int, content: str, caplog: pytest.LogCaptureFixture
) -> None:
    """With fewer elements than before, with as many, and with more. The moved position is kept
    at once, and is warned of once.
    """
    publisher = KnownPublisher({EAST: Facts(0, 10)})
    start = plan_of(publisher, startingOffsets="earliest").latest(Offset({EAST: 0}))
    publisher.known, publisher.content = {EAST: Facts(0, latest)}, content
    plan = plan_of(
        publisher, failOnDataLoss="false", maxElementsPerTrigger="4", minElementsPerTrigger="3"
    )
    offset, reached = start, []
    while (after := plan.latest(offset)) is not offset:
        reached += [(part.start, part.stop) for part in ranges_between(offset, after, 1)]
        offset = Offset.from_json(after.to_json())
        plan = plan_of(publisher, failOnDataLoss="false", maxElementsPerTrigger="4")
    assert reached == [(at, min(at + 4, latest)) for at in range(0, latest, 4)]
    assert offset.positions == {EAST: latest}
    assert len(caplog.records) == 1
    assert "going on with the earliest element" in caplog.text


def test_a_moved_position_is_not_held_back() -> None:
    """Only the offset remembers the loss: an offset that waits for more elements would forget
    that the log has begun anew.
    """
    publisher = KnownPublisher({EAST: Facts(0, 10)})
    plan = plan_of(
        publisher, failOnDataLoss="false", minElementsPerTrigger="50", startingOffsets="earliest"
    )
    start = plan.latest(plan.initial("latest"))
    publisher.content, publisher.epoch = "second", 2
    after = plan.latest(start)
    assert after.begins == {EAST: 0}
    assert after.positions == {EAST: 10}
    assert plan.latest(after) is after


def test_a_connection_that_is_lost_while_a_batch_is_planned_is_examined_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Otherwise the offset would have the digest of an element that no task reads."""
    publisher = KnownPublisher({EAST: Facts(0, 10)})
    plan = plan_of(publisher, startingOffsets="earliest")
    start = plan.latest(plan.initial("latest"))
    publisher.known = {EAST: Facts(0, 20)}
    digests = publisher.digests

    def restart(places: Mapping[Key, int]) -> dict[Key, str]:
        if publisher.epoch == 1:
            publisher.epoch, publisher.content = 2, "second"
        return digests(places)

    monkeypatch.setattr(publisher, "digests", restart)
    with pytest.raises(
        UsageError, match="position 9 of partition 'east' of 'orders' is not the one"
    ):
        plan.latest(start)


GONE: list[tuple[dict[Key, Facts], str, str]] = [
    ({EAST: Facts(0, 5)}, "second", "has begun anew, and has 0 up to, and not with, 5"),
    ({EAST: Facts(0, 90)}, "second", "other elements at the same positions"),
    ({WEST: Facts(0, 90)}, "second", "the publisher has it no more"),
    ({EAST: Facts(4, 90)}, "first", "has dropped some of them, and has 4 up to, and not with, 90"),
]


@pytest.mark.parametrize(("facts", "content", "text"), GONE)
def test_a_planned_batch_of_a_log_that_has_begun_anew_is_left_out(
    facts: dict[Key, Facts], content: str, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    """With failOnDataLoss=false. Otherwise the query ends at each start, because Spark has kept
    the batch; the error names the option.
    """
    publisher = KnownPublisher({EAST: Facts(0, 10)})
    options = {"minPartitions": "3", "startingOffsets": "earliest"}
    plan = plan_of(publisher, **options)
    start = plan.initial("latest")
    end = plan.latest(start)
    assert len(plan.ranges(start, end)) == 3
    again = plan_of(publisher, failOnDataLoss="false", **options)
    assert again.ranges(start, end) == plan.ranges(start, end)
    publisher.known, publisher.content = facts, content
    with pytest.raises(
        UsageError,
        match=f"{text}.*failOnDataLoss=false; or give this query a new checkpointLocation",
    ):
        plan_of(publisher, **options).ranges(start, end)
    lenient = plan_of(publisher, failOnDataLoss="false", **options)
    if content == "first":
        assert len(lenient.ranges(start, end)) == 3  # the task reads the rest of its range
        return
    assert lenient.ranges(start, end) == []
    assert text in caplog.text
    if EAST in facts:
        after = lenient.latest(end)
        assert (
            sum(part.stop - part.start for part, _ in lenient.ranges(end, after))
            == facts[EAST].latest
        )


def test_a_stream_that_is_gone_is_warned_of_once(caplog: pytest.LogCaptureFixture) -> None:
    """Each poll finds it again."""
    plan = plan_of(KnownPublisher({EAST: Facts(0, 5)}), failOnDataLoss="false")
    start = Offset({("bills", "0"): 5, EAST: 5})
    for _ in range(3):
        assert plan.latest(start) is start
    assert len(caplog.records) == 1


def test_other_content_is_found_when_the_connection_is_new() -> None:
    """A publisher that comes back has the same element before the position, or the query ends."""
    publisher = KnownPublisher({EAST: Facts(0, 50)})
    plan = plan_of(publisher, startingOffsets="earliest")
    first = plan.latest(plan.initial("latest"))
    publisher.known = {EAST: Facts(0, 90)}
    publisher.content = "second"
    assert plan.latest(first).positions == {EAST: 90}  # the same connection, so the same publisher
    publisher.epoch = 2
    with pytest.raises(
        UsageError,
        match="position 49 of partition 'east' of 'orders' is not the one that this query has read",
    ):
        plan.latest(first)
    with pytest.raises(UsageError, match="is not the one"):
        plan_of(publisher).latest(first)  # the program was restarted as well
    again = plan_of(publisher, failOnDataLoss="false").latest(first)
    assert (again.begins, again.positions) == ({EAST: 0}, {EAST: 90})


def test_a_checkpoint_of_other_streams_is_refused() -> None:
    """The error names the partition that is gone."""
    with pytest.raises(
        UsageError, match=r"partition '0' of 'bills'.*checkpointLocation of its own"
    ):
        plan_of(KnownPublisher({EAST: Facts(0, 5)})).latest(Offset({("bills", "0"): 5}))


def test_a_checkpoint_belongs_to_the_query_whose_id_it_has() -> None:
    """One without an id takes the first one that is given.
    A batch that is read again is also refused.
    """
    publisher = KnownPublisher({EAST: Facts(0, 50)})
    start = Offset({EAST: 0})
    end = plan_of(publisher, subscriptionId="nightly").latest(start)
    assert end.to_json()["subscription"] == "nightly"
    assert Offset.from_json(end.to_json()) == end
    assert plan_of(publisher, subscriptionId="nightly").latest(end) is end
    for options, text in (
        ({"subscriptionId": "hourly"}, "has subscriptionId=hourly"),
        ({}, "this one has none"),
    ):
        with pytest.raises(
            UsageError, match=f"subscriptionId=nightly.*{text}.*checkpointLocation of its own"
        ):
            plan_of(publisher, **options).latest(end)
        with pytest.raises(UsageError, match="subscriptionId=nightly"):
            plan_of(publisher, **options).ranges(start, end)


def test_a_checkpoint_belongs_to_one_kind_of_delivery() -> None:
    """A count of elements is not a position, also if elements may be lost."""
    publisher = KnownPublisher({EAST: Facts(0, 50)})
    with pytest.raises(UsageError, match="belongs to a query with delivery=atMostOnce"):
        plan_of(publisher, failOnDataLoss="false").latest(Offset({("orders", ""): 40}))
    with pytest.raises(UsageError, match="belongs to a query with delivery=atMostOnce"):
        plan_of(publisher, failOnDataLoss="false").ranges(Offset({}), Offset({("orders", ""): 40}))
    counted = CountedPlan(SourceSettings.of(HOT), publisher)  # type: ignore[arg-type]  # it has the same methods
    for call in (counted.latest, lambda offset: counted.ranges(Offset({}), offset)):
        with pytest.raises(
            UsageError, match="has the positions of a log, and delivery=atMostOnce has none"
        ):
            call(Offset({EAST: 40}))


def test_a_log_is_not_read_at_most_once() -> None:
    """Each batch would begin at its first element again.
    A publisher without positions is asked once.
    """
    publisher = KnownPublisher({EAST: Facts(0, 50)})
    counted = CountedPlan(SourceSettings.of(HOT), publisher)  # type: ignore[arg-type]  # it has the same methods
    for call in (
        lambda: counted.initial("latest"),
        lambda: counted.latest(Offset({})),
        lambda: counted.whole("earliest"),
    ):
        with pytest.raises(UsageError, match=r"'orders' is a log.*Leave delivery out"):
            call()
    publisher.known = {}
    assert counted.latest(counted.initial("latest")).positions == {("orders", ""): 10}


def test_assigned_partitions_and_patterns_choose() -> None:
    """A partition that does not exist, and a pattern without a name, are refused."""
    publisher = KnownPublisher({EAST: Facts(0, 5), WEST: Facts(0, 5), ("bills", "0"): Facts(0, 1)})
    earliest: dict[str, Any] = {"startingOffsets": "earliest"}
    assert plan_of(publisher, assign='{"orders": ["west"]}', **earliest).initial(
        "latest"
    ).positions == {WEST: 0}
    with pytest.raises(UsageError, match="'orders' has no partition 'north'"):
        plan_of(publisher, assign='{"orders": ["north"]}').initial("latest")
    with pytest.raises(UsageError, match="describes no publisher of such a name"):
        plan_of(publisher, streamPattern="b.*").initial("latest")
    publisher.described = ("bills",)
    assert plan_of(publisher, streamPattern="b.*", **earliest).initial("latest").positions == {
        ("bills", "0"): 0
    }


def test_a_batch_query_reads_between_two_places() -> None:
    """Places that the publisher does not have are refused, or are cut with failOnDataLoss=false."""
    publisher = KnownPublisher({EAST: Facts(10, 50)})
    options = {
        "startingOffsets": '{"orders": {"east": 20}}',
        "endingOffsets": '{"orders": {"east": 30}}',
    }
    assert [part for part, _ in plan_of(publisher, **options).whole("earliest")] == [
        Range("orders", "east", 20, 30)
    ]
    assert [part for part, _ in plan_of(publisher).whole("earliest")] == [
        Range("orders", "east", 10, 50)
    ]
    wide = {
        "startingOffsets": '{"orders": {"east": 0}}',
        "endingOffsets": '{"orders": {"east": 60}}',
    }
    with pytest.raises(UsageError, match="startingOffsets has position 0"):
        plan_of(publisher, **wide).whole("earliest")
    lenient = plan_of(publisher, **wide, failOnDataLoss="false").whole("earliest")
    assert [part for part, _ in lenient] == [Range("orders", "east", 10, 50)]


def test_a_query_begins_and_ends_at_a_time() -> None:
    """It uses the position of the time in each partition. If elements are appended or dropped while
    the driver asks, that does not count as a loss.
    """
    known = {EAST: Facts(3, 100), WEST: Facts(50, 60)}
    publisher = KnownPublisher(known)
    plan = plan_of(publisher, startingTimestamp="40000")
    assert plan.initial("latest").positions == {EAST: 40, WEST: 50}
    times = {"startingTimestamp": "40000", "endingTimestamp": "1970-01-01T00:00:55Z"}
    assert [part for part, _ in plan_of(publisher, **times).whole("earliest")] == [
        Range(*EAST, 40, 55),
        Range(*WEST, 50, 55),
    ]
    assert plan_of(publisher, startingTimestamp="55000", endingTimestamp="40000").whole("") == []
    publisher.grows = True
    late = plan_of(publisher, startingTimestamp="200000")
    assert late.initial("latest").positions == {EAST: 109, WEST: 69}
    assert late.latest(late.initial("latest")).positions == {EAST: 109, WEST: 69}
    early = plan_of(publisher, startingTimestamp="0")
    assert early.initial("latest").positions == {
        key: each.earliest for key, each in publisher.known.items()
    }
