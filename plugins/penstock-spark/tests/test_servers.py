"""A query over several servers, each with some of the partitions; one of them may be away. Without
Spark, and without servers.
"""

from collections.abc import Mapping, Sequence

import pytest
from penstock_spark.source import _servers
from penstock_spark.source._offsets import Facts, Key
from penstock_spark.source._plan import Plan
from penstock_spark.source._publisher import _digests
from penstock_spark.source._servers import PAUSE, QueryServers
from penstock_spark.source._settings import SourceSettings

from penstock.api import ConnectionLost, ProtocolError, UsageError

ONE, OTHER = "tcp://one:1", "tcp://other:1"
EAST, WEST, BOTH = ("orders", "east"), ("orders", "west"), ("orders", "both")


class Server:
    """A server that has `known`, or is away."""

    known: dict[str, dict[Key, Facts]]
    away: set[str]
    asked: list[str]

    def __init__(self, uri: str, client: object, subscription: str | None) -> None:
        self.uri = uri
        self.epoch = 1

    def facts_of_some(self, streams: Sequence[str]) -> dict[Key, Facts]:
        self.asked.append(self.uri)
        if self.uri in self.away:
            raise ConnectionLost("refused")
        return dict(self.known[self.uri])

    def facts(
        self, streams: Sequence[str], *, after: Mapping[Key, int], wait: float
    ) -> dict[Key, Facts]:
        self.asked.append(f"{self.uri} waits")
        return self.facts_of_some(streams)

    def digests(self, places: Mapping[Key, int]) -> dict[Key, str]:
        return {key: f"{self.uri} {key[1]} {place}" for key, place in places.items()}

    def positions_at(self, streams: Sequence[str], time: float) -> dict[Key, int]:
        """More than the driver asks for: a stream has partitions of other servers."""
        return {key: len(self.uri) for key in (EAST, WEST, BOTH)}

    def mean_size(self, stream: str, partition: str, start: int, stop: int) -> float:
        return len(self.uri)


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Two servers: each has one partition alone, and both have a third one. The time."""
    Server.known = {
        ONE: {EAST: Facts(0, 10), BOTH: Facts(0, 7)},
        OTHER: {WEST: Facts(5, 20, ("tcp://reader:1",)), BOTH: Facts(2, 9)},
    }
    Server.away, Server.asked = set(), []
    monkeypatch.setattr(_servers, "QueryServer", Server)
    return [1_000.0]


def settings(**options: str) -> SourceSettings:
    given = {"uri": f"{ONE},{OTHER}", "stream": "orders", "startingOffsets": "earliest"}
    return SourceSettings.of(given | options)


def servers(now: list[float], **options: str) -> QueryServers:
    return QueryServers(settings(**options), lambda: now[0])


def test_the_partitions_of_all_servers_are_read(now: list[float]) -> None:
    """Of one that both have, the server counts that has more; if they have as much, it is read from
    either.
    """
    all_of_them = servers(now)
    assert all_of_them.facts(["orders"]) == {
        EAST: Facts(0, 10, (ONE,)),
        WEST: Facts(5, 20, ("tcp://reader:1",)),
        BOTH: Facts(2, 9, (OTHER,)),
    }
    Server.known[ONE][BOTH] = Facts(0, 9)
    assert all_of_them.facts(["orders"])[BOTH] == Facts(2, 9, (ONE, OTHER))
    assert all_of_them.digests({EAST: 3, WEST: 6}) == {
        EAST: f"{ONE} east 3",
        WEST: f"{OTHER} west 6",
    }
    assert all_of_them.mean_size("orders", "west", 5, 9) == len(OTHER)
    with pytest.raises(UsageError, match=r"none of the servers .* gives positions of 'bills'"):
        all_of_them.facts(["orders", "bills"])


def test_a_server_that_is_away_is_waited_for(now: list[float]) -> None:
    """The query fails after the attempts of its client, and Spark's supervisor starts it again."""
    Server.away.add(OTHER)
    with pytest.raises(ConnectionLost, match="refused"):
        servers(now).facts(["orders"])


def test_a_server_that_is_away_may_be_left_out(
    now: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    """Its partitions keep their positions, and it is asked again after a pause: nothing of it is
    read twice, and nothing is left out.
    """
    plan = Plan(settings(failOnDataLoss="false"), servers(now, failOnDataLoss="false"))
    start = plan.latest(plan.initial("latest"))
    assert start.positions == {EAST: 10, WEST: 20, BOTH: 9}
    Server.away.add(OTHER)
    Server.known[ONE][EAST] = Facts(0, 12)
    Server.known[OTHER][WEST] = Facts(5, 25)
    second = plan.latest(start)
    assert second.positions == {EAST: 12, WEST: 20, BOTH: 9}
    assert second.digests[WEST] == start.digests[WEST]
    assert [record.message for record in caplog.records if "is away" in record.message]
    Server.known[ONE][EAST] = Facts(0, 13)
    Server.asked.clear()
    third = plan.latest(second)
    assert OTHER not in Server.asked
    now[0] += PAUSE
    Server.away.clear()
    fourth = plan.latest(third)
    assert fourth.positions == {EAST: 13, WEST: 25, BOTH: 9}
    assert [(part.key, part.start, part.stop) for part, _ in plan.ranges(third, fourth)] == [
        (WEST, 20, 25)
    ]


def test_a_batch_of_a_server_that_is_away_is_not_taken_for_lost(now: list[float]) -> None:
    """A query that was started again asks for the batch that was planned before."""
    left_out = {"failOnDataLoss": "false"}
    plan = Plan(settings(**left_out), servers(now, **left_out))
    start = plan.initial("latest")
    end = plan.latest(start)
    Server.away.add(OTHER)
    again = Plan(settings(**left_out), servers(now, **left_out))
    assert {part.key for part, _ in again.ranges(start, end)} == {EAST, WEST, BOTH}


def test_one_server_holds_the_question(now: list[float]) -> None:
    """They take turns. New elements at another one are seen by the next poll."""
    all_of_them = servers(now)
    seen = {EAST: 10, WEST: 20, BOTH: 9}
    for uri in (OTHER, ONE, OTHER):
        Server.asked.clear()
        all_of_them.facts(["orders"], after=seen, wait=0.5)
        assert Server.asked[:3] == [ONE, OTHER, f"{uri} waits"]
    Server.asked.clear()
    all_of_them.facts(["orders"], after={**seen, EAST: 9}, wait=0.5)
    assert Server.asked == [ONE, OTHER]


def test_no_server_at_all_is_told(now: list[float]) -> None:
    """The error is raised even if each of them may be left out."""
    Server.away |= {ONE, OTHER}
    all_of_them = servers(now, failOnDataLoss="false")
    for _ in range(2):
        with pytest.raises(ConnectionLost, match="refused"):
            all_of_them.facts(["orders"])


@pytest.mark.parametrize("digest", ['"0011"', '"no digits at all"', "5", "null"])
def test_a_digest_that_an_offset_has_no_room_for_is_refused(digest: str) -> None:
    """Before a batch is planned with it. An empty one says that the element is not there."""
    assert _digests("orders", b'{"0": {"digest": ""}}') == {"0": ""}
    assert _digests("orders", b'{"0": {"digest": "00112233445566FF"}}') == {"0": "00112233445566ff"}
    with pytest.raises(ProtocolError, match="as digests of elements of 'orders'"):
        _digests("orders", b'{"0": {"digest": %b}}' % digest.encode())
