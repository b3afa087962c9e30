"""Logs on brokers: kills of the broker, of the bridge and of the subscriber, and the speed beside
the plain clients; the same of topics of several processes, and kills of groups of readers.

Run it as a program: ``python -m campaigns brokers [--kills N] [--only redis] [--topics | --groups]``.
The exit status is 1 if an acknowledged element was lost or came twice, or a bar was missed.
"""

import argparse
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import trio

from campaigns.brokers._bars import measure
from campaigns.brokers._engines import ENGINES, Engine
from campaigns.brokers._group_kills import (
    PARTITIONS,
    GroupOutcome,
    of_the_members,
    of_their_broker,
)
from campaigns.brokers._kills import Outcome, of_the_bridge, of_the_broker, of_the_subscriber
from campaigns.brokers._shared import kill_processes, kill_under_a_topic, measure_topics
from tests._free_port import free_port


async def kills(engine: Engine, folder: Path, count: int, seed: int) -> list[Outcome]:
    """Kill each of the three `count` times, each time with a new server."""
    outcomes = []
    with engine.running(folder / f"{engine.name}-1") as server:
        outcomes.append(await of_the_broker(engine, server, count, seed))
    with engine.running(folder / f"{engine.name}-2") as server:
        outcomes.append(await of_the_bridge(engine, server, count, seed, free_port()))
    with engine.running(folder / f"{engine.name}-3") as server:
        file = folder / f"{engine.name}.read"
        outcomes.append(await of_the_subscriber(engine, server, count, seed, free_port(), file))
    for each in outcomes:
        print(f"{engine.name}: {each}", flush=True)
    return outcomes


def topics(engine: Engine, folder: Path, options: argparse.Namespace) -> int:
    """Kill the broker under a topic, and measure it. Return how many elements were wrong."""
    wrong = 0
    if options.kills:
        with engine.running(folder / f"{engine.name}-5") as server:
            wrong = trio.run(kill_under_a_topic, engine, server, options.kills, options.seed)
            wrong += trio.run(kill_processes, engine, server, options.kills, options.seed)
    if options.rounds:
        measure_topics(engine, folder / f"{engine.name}-6", options.rounds)
    return wrong


async def group_kills(engine: Engine, folder: Path, count: int, seed: int) -> list[GroupOutcome]:
    """Kill members of a group, and the server beneath them, `count` times each."""
    outcomes = []
    for kind in (of_the_members, of_their_broker):
        place = folder / f"{engine.name}-{kind.__name__}"
        place.mkdir()
        with engine.running(place / "server") as server:
            async with engine.writer(server.url, partitions=PARTITIONS) as log:
                outcomes.append(await kind(engine.name, server, log, place, count, seed))
        print(f"{engine.name}: {outcomes[-1]}", flush=True)
    return outcomes


def main(argv: list[str]) -> int:
    """Run all of it, and return the exit status."""
    parser = argparse.ArgumentParser(prog="campaigns brokers", description=__doc__)
    parser.add_argument("--kills", type=int, default=20, help="of each; 0 leaves them out")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3, help="of the speed; 0 leaves it out")
    parser.add_argument("--only", choices=ENGINES, help="one broker")
    parser.add_argument("--topics", action="store_true", help="topics of several processes alone")
    parser.add_argument("--groups", action="store_true", help="groups of readers alone")
    options = parser.parse_args(argv)
    engines = [each for each in ENGINES.values() if options.only in (None, each.name)]
    missing = [each.name for each in engines if each.program is None]
    if missing:
        print(f"no program for: {', '.join(missing)}")
        return 2
    good, lost, missed, missed_by_groups = True, 0, 0, 0
    with TemporaryDirectory() as folder:
        for engine in engines:
            if options.kills and not options.topics:
                groups = trio.run(group_kills, engine, Path(folder), options.kills, options.seed)
                good &= all(each.is_good for each in groups)
                missed_by_groups += sum(each.lost + each.turned for each in groups)
            if options.groups:
                continue
            if engine.name != "kafka":  # a topic of its log cannot be made by a client
                lost += topics(engine, Path(folder), options)
            if options.topics:
                continue
            if options.kills:
                outcomes = trio.run(kills, engine, Path(folder), options.kills, options.seed)
                good &= all(each.is_good for each in outcomes)
                lost += sum(each.lost + each.repeated for each in outcomes)
            if options.rounds:
                missed += measure(engine, Path(folder) / f"{engine.name}-4", options.rounds)
    print(
        f"{options.kills} kills each of broker, bridge and subscriber: {lost} acknowledged lost or "
        f"repeated; as many of members of a group and of their broker: {missed_by_groups} lost or "
        f"out of order; {missed} bars of speed missed"
    )
    return 0 if good and not missed and not lost else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
