"""A model of one stream: requests and cancels are made at random places,
and the publisher must do what the model says.

The places are those between which a fault can hide: inside on_subscribe, inside the n-th on_next,
and after some steps of the publisher's tasks. The model is exact: the requests add up, that number
of elements comes, and after a cancel nothing does. Subscribers of the draft make no call inside a
signal, so its scripts act only between steps.
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from random import Random
from typing import Any, Final

import attrs
import trio

from penstock.api import UNBOUNDED, InvalidStateError
from penstock.testing import ManualSubscriber
from penstock_tck._publisher_stage import PublisherStage
from penstock_tck._random_scripts import Script, play_random_scripts

MOST_ACTS: Final = 6
MOST_STEPS: Final = 8
"""Passes of the run loop between most acts, at most.
Between some there are as many as the stream has elements.
"""

LENGTHS: Final = (40, 7, 40, 1, 40, 3)
"""Elements of the streams. Most are longer than a publisher's first batch, so
that an act can come late.
"""

CANCEL: Final = 0
"""The number of elements that stands for a cancel."""

PLACES: Final = ("subscribe", "next", "next", "step", "step")
DRAFT_PLACES: Final = ("step",)


@attrs.frozen
class PlacedCall:
    """A request of `n` elements, or a cancel, at a place."""

    place: str
    """Inside on_subscribe ("subscribe"), inside the on_next of element `at` ("next"), or `at`
    passes after the act before ("step").
    """
    at: int
    n: int

    def __str__(self) -> str:
        what = "cancel()" if self.n == CANCEL else f"request({self.n})"
        where = {
            "subscribe": "inside on_subscribe",
            "next": f"inside on_next number {self.at}",
            "step": f"{self.at} passes later",
        }
        return f"{what} {where[self.place]}"


def random_acts(seed: int, length: int, places: Sequence[str] = PLACES) -> tuple[PlacedCall, ...]:
    """Return the acts of this seed for a stream of `length` elements.
    Every second script has a cancel.
    """
    random = Random(seed)  # noqa: S311  # tests, no secrets
    acts = [_random_request(random, length, places) for _ in range(random.randint(1, MOST_ACTS))]
    if random.random() < 0.5:
        acts.insert(random.randint(0, len(acts)), _random_cancel(random, length, places))
    return tuple(acts)


def _random_request(random: Random, length: int, places: Sequence[str]) -> PlacedCall:
    # Small numbers more often: most faults hide near the begin. Three quarters of a long stream
    # leave some elements for a late act.
    n = random.choice((1, 1, 2, 3, 5, max(1, length * 3 // 4), length))
    return _act_at(
        random.choice(places),
        random.choice((0, 1, 2, random.randint(0, MOST_STEPS))),
        random.choice((1, 2, 3, length)),
        n,
    )


def _random_cancel(random: Random, length: int, places: Sequence[str]) -> PlacedCall:
    late = random.randint(length * 3 // 4, length)
    return _act_at(
        random.choice(places),
        random.choice((0, 1, 2, random.randint(0, MOST_STEPS), late)),
        random.choice((1, 2, 3, random.randint(1, length), late)),
        CANCEL,
    )


def _act_at(place: str, passes: int, element: int, n: int) -> PlacedCall:
    return PlacedCall(place, passes if place == "step" else max(1, element), n)


class ProbePlayer:
    """Plays acts on one probe, and counts what the model expects."""

    def __init__(self, acts: Iterable[PlacedCall]) -> None:
        self.acts = tuple(acts)
        self.requested = 0
        self.received = 0
        self.is_cancelled = False
        self.arrived = 0
        """Elements that had come when all acts were played."""
        self.ended = False

    def on_subscribe(self, probe: ManualSubscriber) -> None:
        """Act inside on_subscribe."""
        self.play(probe, (act for act in self.acts if act.place == "subscribe"))

    def on_next(self, probe: ManualSubscriber, _element: Any) -> None:
        """Act inside on_next."""
        self.received += 1
        self.play(
            probe, (act for act in self.acts if act.place == "next" and act.at == self.received)
        )

    async def take_steps(self, probe: ManualSubscriber) -> None:
        """Act between the signals. Checkpoints."""
        for act in self.acts:
            if act.place == "step":
                for _ in range(act.at):
                    await trio.lowlevel.checkpoint()
                self.play(probe, (act,))

    def play(self, probe: ManualSubscriber, acts: Iterable[PlacedCall]) -> None:
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


class StreamModel(PublisherStage):
    """The steps of the checks that compare a publisher with the model."""

    abstract = True

    async def play_on_streams(self, places: Sequence[str]) -> None:
        """Play random scripts on fresh publishers; end the check with the shortest that fails.
        Checkpoints.
        """
        received: list[int] = []

        def make(seed: int) -> Script:
            length = self.length(LENGTHS[seed % len(LENGTHS)])
            acts = random_acts(seed, max(1, min(length, max(LENGTHS))), places)
            return Script(
                acts=acts, length=length, setting=f"a stream of {length} elements", seed=seed
            )

        async def play(script: Script) -> str:
            player = ProbePlayer(script.acts)
            seen = await self._play_on_stream(player, script.length)
            received.append(player.received)
            return seen

        await play_random_scripts(self, make, play)
        self.require_evidence(any(received), "no stream of a script had an element")

    async def _play_on_stream(self, player: ProbePlayer, length: int) -> str:
        """Play on a fresh publisher.
        Return how the publisher differs from the model, or an empty text. Checkpoints.
        """
        probe = self.probe(when_subscribed=player.on_subscribe, when_next=player.on_next)
        self.subscribe(await self.publisher(length), probe)
        await self.settle()
        if probe.subscription is None:
            # draft rules D1.1 and D1.3: a stream whose end is known has no subscription.
            return "" if probe.ended else "on_subscribe did not come"
        await player.take_steps(probe)
        await self.settle_all(lambda: player.received)
        await self._request_after_the_cancel(player, probe)
        player.ended, player.arrived = probe.ended, player.received
        if probe.ledger.is_open:
            probe.cancel()
        await self.settle()
        return self._differs(player, probe, length)

    async def _request_after_the_cancel(self, player: ProbePlayer, probe: ManualSubscriber) -> None:
        """Request once more if the stream was cancelled: then nothing may come. Checkpoints."""
        if player.is_cancelled:
            probe.silence()
            # draft rule D2.1 wants it to raise; a separate check looks at that.
            with suppress(InvalidStateError):
                probe.request(3)
            await self.settle()

    def _differs(self, player: ProbePlayer, probe: ManualSubscriber, length: int) -> str:
        """Return how what came differs from the model, or an empty text."""
        if probe.violations:
            return str(probe.violations[0])
        due = min(player.requested, length)
        if not player.is_cancelled and player.arrived != due:
            return (
                f"{player.requested} elements were requested, and {player.arrived} of {due} arrived"
            )
        if (
            not player.is_cancelled
            and self.completes
            and player.requested > length
            and not player.ended
        ):
            return f"more than the {length} elements of the stream were requested, and no end came"
        return ""
