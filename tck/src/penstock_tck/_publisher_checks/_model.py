"""A model of one stream: requests and cancels are made at random places, and the publisher must do what the model says.

The places are those between which a fault can hide: inside on_subscribe, inside the n-th on_next, and after some steps of the publisher's
tasks. The model is exact: the requests add up, that number of elements comes, and after a cancel nothing does. A script that fails is
shrunk, act by act; the transcript of the check is that of the shortest script.
"""

from collections.abc import Iterable
from random import Random
from time import process_time
from typing import Any, Final

import attrs
import trio

from penstock.api import UNBOUNDED
from penstock.testing import ExpectationFailed, ManualSubscriber, Transcript
from penstock_tck._check import check
from penstock_tck._publisher_stage import PublisherStage

MOST_SCRIPTS: Final = 300
"""Scripts in one check, unless the class says another number. Each saboteur of the model is found among the first 102."""

LEAST_SCRIPTS: Final = 30
SECONDS: Final = 1.0
"""Seconds of the processor after which no script begins. 300 scripts take 0.05 s, and 4 s over TLS."""

MOST_ACTS: Final = 6
MOST_STEPS: Final = 8
"""Passes of the run loop between two acts, at most."""

LENGTHS: Final = (1, 3, 40)
"""Elements of the streams. The last is longer than a publisher's first batch, so that an act can come late."""

CANCEL: Final = 0
"""The number of elements that stands for a cancel."""


@attrs.frozen
class Act:
    """A request of `n` elements, or a cancel, at a place."""

    place: str
    """Inside on_subscribe ("subscribe"), inside the on_next of element `at` ("next"), or `at` passes after the act before ("step")."""
    at: int
    n: int

    def __str__(self) -> str:
        what = "cancel()" if self.n == CANCEL else f"request({self.n})"
        where = {"subscribe": "inside on_subscribe", "next": f"inside on_next number {self.at}", "step": f"{self.at} passes later"}
        return f"{what} {where[self.place]}"


def random_script(seed: int, length: int) -> tuple[Act, ...]:
    """Return the acts of this seed for a stream of `length` elements."""
    random = Random(seed)  # noqa: S311  # tests, no secrets
    acts = []
    for _ in range(random.randint(1, MOST_ACTS)):
        place = random.choice(("subscribe", "next", "step", "step"))
        # Small numbers more often: most faults hide near the begin. Three quarters of a long stream leave some elements for a late act.
        passes, element = random.choice((0, 1, 2, random.randint(0, MOST_STEPS))), random.choice((1, 2, 3, random.randint(1, length)))
        n = random.choice((1, 1, 2, 3, max(1, length * 3 // 4), length)) if random.random() < 0.8 else CANCEL
        acts.append(Act(place, passes if place == "step" else element, n))
    return tuple(acts)


class Player:
    """Plays a script on one probe, and counts what the model expects."""

    def __init__(self, script: Iterable[Act]) -> None:
        self.script = tuple(script)
        self.requested = 0
        self.received = 0
        self.is_cancelled = False
        self.arrived = 0
        """Elements that had come when the script was over."""
        self.ended = False

    def on_subscribe(self, probe: ManualSubscriber) -> None:
        """Act inside on_subscribe."""
        self.play(probe, (act for act in self.script if act.place == "subscribe"))

    def on_next(self, probe: ManualSubscriber, _element: Any) -> None:
        """Act inside on_next."""
        self.received += 1
        self.play(probe, (act for act in self.script if act.place == "next" and act.at == self.received))

    async def take_steps(self, probe: ManualSubscriber) -> None:
        """Act between the signals. Checkpoints."""
        for act in self.script:
            if act.place == "step":
                for _ in range(act.at):
                    await trio.lowlevel.checkpoint()
                self.play(probe, (act,))

    def play(self, probe: ManualSubscriber, acts: Iterable[Act]) -> None:
        """Make these requests and cancels, unless the stream is over."""
        for act in acts:
            if self.is_cancelled or not probe.ledger.is_open:
                return
            if act.n == CANCEL:
                self.is_cancelled = True
                probe.cancel()
            else:
                self.requested = min(UNBOUNDED, self.requested + act.n)
                probe.request(act.n)


class ModelChecks(PublisherStage):
    """The check against a model."""

    abstract = True

    @check("3.8", "3.12")
    async def random_requests_and_cancels_follow_the_model(self) -> None:
        """Opens many streams, and requests and cancels at random places: inside on_subscribe, inside on_next, between the steps of tasks.
        Expects that requests add up, that exactly that number of elements comes, and nothing after a cancel. Shrinks a script that fails.

        If this fails, look at what request() and cancel() do while a signal or a task is under way: a request must be counted once, and a
        cancel must be seen before the next element.
        """
        began = process_time()
        for seed in range(MOST_SCRIPTS if self.model_seeds is None else self.model_seeds):
            # Processor time: on a busy machine as many scripts are played as on a quiet one.
            if self.model_seeds is None and seed >= LEAST_SCRIPTS and process_time() - began > SECONDS:
                return
            length = self.length(LENGTHS[seed % len(LENGTHS)])
            script = random_script(seed, max(1, min(length, max(LENGTHS))))
            if first := await self._play_model(script, length, Transcript()):
                script = await self._shrink(script, length)
                # The tasks may take their turns in another order this time, and then the first observation stands.
                seen = await self._play_model(script, length, self.env.transcript) or first
                acts = f"seed {seed}, a stream of {length} elements: {', then '.join(map(str, script))}"
                # The result has the text of each violation already.
                self.fail(acts if self.env.transcript.violations else f"{acts}: {seen}")

    async def _shrink(self, script: tuple[Act, ...], length: int) -> tuple[Act, ...]:
        """Return a part of the script that fails, too, and in which no act can be left out. Checkpoints."""
        is_shorter = True
        while is_shorter:
            is_shorter = False
            for act in script:
                shorter = tuple(other for other in script if other is not act)
                if shorter and await self._play_model(shorter, length, Transcript()):
                    script, is_shorter = shorter, True
        return script

    async def _play_model(self, script: tuple[Act, ...], length: int, transcript: Transcript) -> str:
        """Play a script on a fresh publisher. Return how the publisher differs from the model, or an empty text. Checkpoints."""
        player = Player(script)
        probe = ManualSubscriber("s1", transcript=transcript, when_subscribed=player.on_subscribe, when_next=player.on_next)
        self.subscribe(await self.publisher(length), probe)
        try:
            await probe.expect_subscription()
            await player.take_steps(probe)
            await self.settle()
            await self._poke(player, probe)
        except ExpectationFailed as failed:
            return failed.seen
        finally:
            if probe.ledger.is_open and probe.subscription is not None:
                probe.cancel()
            await self.settle()
        return self._differs(player, probe, length)

    async def _poke(self, player: Player, probe: ManualSubscriber) -> None:
        """Request once more if the stream was cancelled: then nothing may come. Checkpoints."""
        if player.is_cancelled:
            probe.silence()
            probe.request(3)
            await self.settle()
        player.ended = probe.ended
        player.arrived = player.received

    def _differs(self, player: Player, probe: ManualSubscriber, length: int) -> str:
        """Return how what came differs from the model, or an empty text."""
        if probe.violations:
            return str(probe.violations[0])
        due = min(player.requested, length)
        if not player.is_cancelled and player.arrived != due:
            return f"{player.requested} elements were requested, and {player.arrived} of {due} arrived"
        if not player.is_cancelled and self.completes and player.requested > length and not player.ended:
            return f"more than the {length} elements of the stream were requested, and no end came"
        return ""
