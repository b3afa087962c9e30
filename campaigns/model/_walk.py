"""Visit every state of a scenario: each step that may come next is taken from each state, once."""

from collections import deque
from collections.abc import Iterator
from time import perf_counter

import attrs

from campaigns.model._fingerprint import fingerprint
from campaigns.model._scenarios import NO_BOUND, Scenario
from campaigns.model._world import Step, World


@attrs.frozen(kw_only=True)
class Walked:
    """The counts of a walk."""

    states: int
    steps: int
    """Steps that were taken, each from a state that was not visited before."""
    depth: int
    """The length of the longest shortest way to a state."""
    ends: int
    """States in which no step was left."""
    cut: int
    """States behind the bound of the depth, which were not visited."""
    seconds: float


class FaultFound(AssertionError):
    """A rule is broken. The message has the shortest sequence of steps that breaks it."""

    def __init__(self, script: tuple[Step, ...], error: BaseException) -> None:
        super().__init__(
            f"{type(error).__name__}: {error}\n  after {len(script)} steps: "
            f"{', '.join(f'{name} {n}' for name, n in script)}"
        )
        self.script = script


def replay(scenario: Scenario, protocol: str, script: tuple[Step, ...]) -> World:
    """Return the state that these steps lead to."""
    world = World(scenario, protocol)
    for step in script:
        world.take(step)
    return world


def walk(scenario: Scenario, protocol: str, *, depth: int = NO_BOUND) -> Walked:
    """Visit all states that at most `depth` steps lead to, nearest first.
    Raises FaultFound for the first broken rule.
    """
    began, depth = perf_counter(), min(depth, scenario.depth)
    first = World(scenario, protocol)
    seen = {fingerprint(first)}
    # A state is the sequence of steps to it:
    # a session cannot be copied, and a sequence of steps has one result.
    waiting: deque[tuple[tuple[Step, ...], list[Step]]] = deque([((), first.steps())])
    steps = ends = cut = deepest = 0
    while waiting:
        script, possible = waiting.popleft()
        for further in _further(script, possible):
            steps += 1
            world, following = _visit(scenario, protocol, further)
            mark = fingerprint(world)
            if mark in seen:
                continue
            seen.add(mark)
            deepest = len(further)
            if not following:
                ends += 1
            elif len(further) < depth:
                waiting.append((further, following))
            else:
                cut += 1
    return Walked(
        states=len(seen),
        steps=steps,
        depth=deepest,
        ends=ends,
        cut=cut,
        seconds=perf_counter() - began,
    )


def _further(script: tuple[Step, ...], possible: list[Step]) -> Iterator[tuple[Step, ...]]:
    return ((*script, step) for step in possible)


def _visit(scenario: Scenario, protocol: str, script: tuple[Step, ...]) -> tuple[World, list[Step]]:
    """Return the state behind `script`, and the steps that may come next."""
    # Each kind of exception is a finding: a session raises none for what two honest sides do.
    try:
        world = replay(scenario, protocol, script)
        following = world.steps()
        if world.is_at_rest(following):
            world.check_rest()
    except (Exception, AssertionError) as error:
        raise FaultFound(script, error) from error
    return world, following
