"""All disturbances of a scenario: cuts after each byte of each direction in each mode,
cancellations of each side before each task step.
"""

from collections.abc import Iterator
from random import Random

from campaigns.cuts._cuttable_transport import Cut, CutMode
from campaigns.cuts._run import (
    EXTRA_SECONDS,
    Cancellation,
    Disturbance,
    Report,
    RunFailed,
    Side,
    run_scenario,
)
from campaigns.cuts._scenarios import SCENARIOS
from campaigns.sweep._sweep import cheap_collections


def all_cuts(name: str, undisturbed: Report) -> Iterator[Cut]:
    """Return all cuts of a scenario, from the bytes that its undisturbed run delivers."""
    modes = [
        mode for mode in CutMode if mode is not CutMode.SILENCE or SCENARIOS[name].notices_silence
    ]
    for direction, delivered in undisturbed.delivered.items():
        for mode in modes:
            yield from (
                Cut(direction=direction, after=after, mode=mode) for after in range(delivered + 1)
            )


def all_cancellations(name: str, undisturbed: Report) -> Iterator[Cancellation]:
    """Return all cancellations of a scenario, from the steps that its undisturbed run takes."""
    for side in Side if SCENARIOS[name].cancellable else (Side.CLIENT, Side.SERVER):
        yield from (Cancellation(side=side, step=step) for step in range(1, undisturbed.steps + 1))


def sweep(
    name: str,
    *,
    seed: int = 0,
    every: int = 1,
    max_runs: int | None = None,
    failures: list[RunFailed] | None = None,
) -> int:
    """Run a scenario with one of `every` disturbances (or a random sample of `max_runs`) under a
    seed. Return the number of runs.

    A failed run is appended to `failures`; without that list it raises.
    """
    undisturbed = run_scenario(name, None, seed=seed)
    disturbances: list[Disturbance] = [
        *all_cuts(name, undisturbed),
        *all_cancellations(name, undisturbed),
    ][seed % every :: every]
    if max_runs is not None and len(disturbances) > max_runs:
        disturbances = Random(f"{name}{seed}").sample(disturbances, max_runs)
    for disturbance in disturbances:
        try:
            run_scenario(
                name,
                disturbance,
                seed=seed,
                max_seconds=undisturbed.seconds + extra_seconds(disturbance),
            )
        except RunFailed as failure:
            if failures is None:
                raise
            failures.append(failure)
    return len(disturbances)


def sweep_evenly(name: str, seed: int, every: int) -> tuple[str, int, list[str]]:
    """Sweep a scenario with one of `every` disturbances, or with all if that is 1.

    Return its name, the number of runs and the texts of the failures: texts can be pickled.
    """
    failures: list[RunFailed] = []
    with cheap_collections():
        runs = sweep(name, seed=seed, every=every, failures=failures)
    return name, runs, [str(failure) for failure in failures]


def extra_seconds(disturbance: Disturbance) -> float:
    """Return how many seconds longer than the undisturbed run a run may take."""
    return EXTRA_SECONDS[disturbance.mode if isinstance(disturbance, Cut) else CutMode.FIN]
