"""Visit every state of a scenario: each step that may come next is taken from each state, once."""

from collections import deque
from time import perf_counter
from typing import Final, NamedTuple

import attrs

from campaigns.model._fingerprint import fingerprint
from campaigns.model._scenarios import NO_BOUND, Scenario
from campaigns.model._world import Step, World

MOST_KEPT: Final = 2_000
"""States that are kept until their first step is taken. Each has about 100 KB."""


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


class _Reached(NamedTuple):
    """A state whose steps are still to be taken."""

    script: tuple[Step, ...]
    """The shortest way to it."""
    following: list[Step]
    world: World | None
    """The state itself; None if too many are kept."""


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
    waiting: deque[_Reached] = deque([_Reached((), first.steps(), first)])
    steps = ends = cut = deepest = 0
    while waiting:
        reached = waiting.popleft()
        kept = reached.world
        for step in reached.following:
            steps += 1
            further = (*reached.script, step)
            # One of the steps is taken in the world that is here; the others need one of their own.
            world, kept = kept, None
            world, following = _visit(scenario, protocol, further, world)
            mark = fingerprint(world)
            if mark in seen:
                continue
            seen.add(mark)
            deepest = len(further)
            if not following:
                ends += 1
            elif len(further) < depth:
                keeps = len(waiting) < MOST_KEPT
                waiting.append(_Reached(further, following, world if keeps else None))
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


def _visit(
    scenario: Scenario, protocol: str, script: tuple[Step, ...], before: World | None
) -> tuple[World, list[Step]]:
    """Return the state after `script`, and the steps that may come next. `before` is the state
    before its last step, if it is still there.
    """
    # Each kind of exception is a finding: a session raises none for what two honest sides do.
    try:
        if before is None:
            world = replay(scenario, protocol, script)
        else:
            world = before
            world.take(script[-1])
        following = world.steps()
        if world.is_at_rest(following):
            world.check_rest()
    except (Exception, AssertionError) as error:
        raise FaultFound(script, error) from error
    return world, following
