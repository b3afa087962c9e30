"""Logs on brokers: kills of the broker, of the bridge and of the subscriber, and the speed beside
the plain clients.

Run it as a program: ``python -m campaigns brokers [--kills N] [--only redis]``.
The exit status is 1 if an acknowledged element was lost or came twice, or a bar was missed.
"""

import argparse
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import trio

from campaigns.brokers._bars import measure
from campaigns.brokers._engines import ENGINES, Engine
from campaigns.brokers._kills import Outcome, of_the_bridge, of_the_broker, of_the_subscriber
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


def main(argv: list[str]) -> int:
    """Run all of it, and return the exit status."""
    parser = argparse.ArgumentParser(prog="campaigns brokers", description=__doc__)
    parser.add_argument("--kills", type=int, default=20, help="of each; 0 leaves them out")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3, help="of the speed; 0 leaves it out")
    parser.add_argument("--only", choices=ENGINES, help="one broker")
    options = parser.parse_args(argv)
    engines = [each for each in ENGINES.values() if options.only in (None, each.name)]
    missing = [each.name for each in engines if each.program is None]
    if missing:
        print(f"no program for: {', '.join(missing)}")
        return 2
    good, lost, missed = True, 0, 0
    with TemporaryDirectory() as folder:
        for engine in engines:
            if options.kills:
                outcomes = trio.run(kills, engine, Path(folder), options.kills, options.seed)
                good &= all(each.is_good for each in outcomes)
                lost += sum(each.lost + each.repeated for each in outcomes)
            if options.rounds:
                missed += measure(engine, Path(folder) / f"{engine.name}-4", options.rounds)
    print(
        f"{options.kills} kills each of broker, bridge and subscriber: {lost} acknowledged lost or "
        f"repeated; {missed} bars of speed missed"
    )
    return 0 if good and not missed else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
