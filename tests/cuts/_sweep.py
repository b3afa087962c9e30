"""Every disturbance of a scenario: a cut after each byte of each way, in each manner; each side cancelled before each task step."""

from collections.abc import Iterator
from random import Random

from tests.cuts._run import GRACE, Cancel, Disturbance, Remains, Report, Side, attempt
from tests.cuts._scenarios import SCENARIOS
from tests.cuts._wire import Cut, How
from tests.sweep._sweep import cheap_collections


def cuts(name: str, undisturbed: Report) -> Iterator[Cut]:
    """Return every cut of a scenario that carries so many bytes."""
    hows = [how for how in How if how is not How.SILENCE or SCENARIOS[name].notices_silence]
    for way, carried in undisturbed.carried.items():
        for how in hows:
            yield from (Cut(way=way, after=after, how=how) for after in range(carried + 1))


def cancellations(name: str, undisturbed: Report) -> Iterator[Cancel]:
    """Return every cancellation of a scenario that takes so many steps."""
    for side in Side if SCENARIOS[name].one else (Side.CLIENT, Side.SERVER):
        yield from (Cancel(side=side, step=step) for step in range(1, undisturbed.steps + 1))


def sweep(name: str, *, seed: int = 0, most: int | None = None, found: list[Remains] | None = None) -> int:
    """Disturb a scenario in every way (or in `most` ways, spread) under a seed; return the number of runs.

    What remains of one is raised, or put into `found`.
    """
    undisturbed = attempt(name, None, seed=seed)
    disturbances: list[Disturbance] = [*cuts(name, undisturbed), *cancellations(name, undisturbed)]
    if most is not None and len(disturbances) > most:
        disturbances = Random(f"{name}{seed}").sample(disturbances, most)
    for each in disturbances:
        try:
            attempt(name, each, seed=seed, most_seconds=undisturbed.seconds + grace(each))
        except Remains as remains:
            if found is None:
                raise
            found.append(remains)
    return len(disturbances)


def sweep_all(name: str, seed: int) -> tuple[str, int, list[str]]:
    """Do it in a process of its own: nothing left out, and everything that was found as words."""
    found: list[Remains] = []
    with cheap_collections():
        runs = sweep(name, seed=seed, found=found)
    return name, runs, [str(each) for each in found]


def grace(disturbance: Disturbance) -> float:
    """Return how much longer than undisturbed a run may take."""
    return GRACE[disturbance.how if isinstance(disturbance, Cut) else How.FIN]
