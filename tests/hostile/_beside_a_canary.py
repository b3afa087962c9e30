"""Attack a server beside a canary: an honest client on another connection of the same server. A
census is taken before and after.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any

import trio

from penstock.api import Limits
from penstock.runtime import Server, connect, serve
from tests.hostile._attack_clock import AttackClock
from tests.hostile._canary import GAP, Canary
from tests.hostile._census import census, wait_forgotten
from tests.hostile._figures import HELD, HOLD_UP, hostile_to, watch_figures
from tests.hostile._setup import REGISTRY, Setup, service


@dataclass
class Aftermath:
    """The verdicts of the canary, the census and the hooks after an attack."""

    gap: float
    """The longest wait of the canary for a tick."""
    left: dict[str, int]
    """Objects that were not there before."""
    told: list[Exception]
    """The arguments of the calls of `on_violation`."""
    stretch: float
    held: int = 0
    """The most bytes that the attacked side held for one hostile connection."""
    hold_up: float = 0.0
    """The processor time, in seconds, of the longest pass of the run loop."""

    def check(self, *, holds: int = 0) -> None:
        """Assert that the canary was not kept waiting, that nothing was reported,
        that nothing is left, and both figures.

        A hostile connection may hold `holds` bytes more than `HELD`.
        """
        assert self.gap <= GAP * self.stretch
        assert self.hold_up <= HOLD_UP * self.stretch
        self.check_held(holds)
        self.check_all_but_the_gap()

    def check_held(self, holds: int) -> None:
        assert self.held <= HELD + holds

    def check_all_but_the_gap(self) -> None:
        assert self.left == {}, self.left
        assert self.told == []


async def wait_until(condition: Callable[[], object]) -> None:
    """Poll: a server has no events for changes of its tables."""
    while not condition():  # noqa: ASYNC110 (the same)
        await trio.sleep(0.002)


async def wait_alone(server: Server) -> None:
    """Return when the canary's connection is the only one."""
    await wait_until(lambda: len(server._admission.open) == 1)


async def beside_a_canary(
    setup: Setup, attack: Callable[[Server, AttackClock], Awaitable[None]]
) -> Aftermath:
    """Run `attack` on a server beside a canary, and return what came of it."""
    told: list[Exception] = []
    clock = AttackClock(setup.stretch)
    limits, files = setup.limits, setup.files
    # The canary pings no more often than the server allows, with its scaled limits.
    own = replace(Limits(), keepalive_least=limits.keepalive_least)
    given: dict[str, Any] = {
        "options": files.server_options,
        "resume": setup.resumes,
        "on_violation": told.append,
    }
    serving = serve(service(), setup.url, limits=limits, registry=REGISTRY, **given)
    async with (
        serving as server,
        connect(
            server.addresses[0], limits=own, registry=REGISTRY, options=files.client_options
        ) as peer,
    ):
        async with peer.subscribe(setup.ticks) as ticks, trio.open_nursery() as nursery:
            canary = Canary(clock)
            nursery.start_soon(canary.watch, ticks)
            await canary.wait_ticks()
            before = census()
            with (
                trio.fail_after(setup.hangs_after * setup.stretch),
                watch_figures(hostile_to(server)) as figures,
            ):
                # After the census, for which the canary waits.
                canary.restart()
                await attack(server, clock)
                await wait_alone(server)
            await canary.wait_ticks()
            aftermath = Aftermath(
                canary.longest, {}, told, setup.stretch, figures.held, figures.longest
            )
            aftermath.left = await wait_forgotten(before, clock)
            nursery.cancel_scope.cancel()
    clock.close()
    return aftermath
