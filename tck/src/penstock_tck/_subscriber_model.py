"""A model of one subscriber: elements, requests, cancels and the end come at random places, and its
handlers must see what the model says.

An element comes after some steps of tasks, or inside the subscriber's next request (rules 3.10,
3.11), also if that one is made inside on_subscribe or inside on_next. The model is exact: the
handlers get each element that was signalled, in order and once, then the end.
After a cancel they get no more than that.
"""

from contextlib import suppress
from random import Random
from typing import Any, Final

import attrs
import trio

from penstock.api import InvalidStateError
from penstock.testing import ManualPublisher, shown
from penstock_tck._capabilities import TRIGGERS_CANCEL, TRIGGERS_REQUEST
from penstock_tck._random_scripts import Script, play_random_scripts
from penstock_tck._subscriber_stage import SubscriberStage
from penstock_tck._verification import resolve

MOST_ACTS: Final = 6
MOST_STEPS: Final = 4
"""Passes of the run loop between two acts, at most."""

SETTLED: Final = MOST_STEPS + 1
"""Stands for as many passes as it takes until all is settled."""

MOST_ELEMENTS: Final = 30
"""Elements that a script signals at most, in all."""

ACTS: Final = ("emit", "nest", "request")
ENDS: Final = ("on_complete", "on_error", "")


@attrs.frozen(kw_only=True)
class TimedAct:
    """One act, `at` passes of the run loop after the act before."""

    what: str
    """Signal elements ("emit"), signal them inside the next request ("nest"), call a hook
    ("request", "cancel"), or end ("end").
    """
    at: int
    number: int = 0
    end: str = ""
    """The end that comes behind the elements, or None."""

    def __str__(self) -> str:
        words = {
            "emit": f"{self.number} elements",
            "nest": (
                f"{self.number} elements{f' and {self.end}' if self.end else ''} inside the next "
                "request"
            ),
            "request": f"trigger_request({self.number})",
            "cancel": "trigger_cancel()",
            "end": self.end or "no end",
        }
        return (
            f"{words[self.what]} "
            f"{f'{self.at} passes later' if self.at < SETTLED else 'when all has settled'}"
        )


def random_acts(seed: int, ends: tuple[str, ...] = ENDS) -> tuple[TimedAct, ...]:
    """Return the acts of this seed. Every third script has a cancel.
    The last act is an end, or says that no end comes.
    """
    random = Random(seed)  # noqa: S311  # tests, no secrets
    acts = [_random_act(random, ends) for _ in range(random.randint(1, MOST_ACTS))]
    if random.random() < 0.3:
        acts.insert(random.randint(0, len(acts)), TimedAct(what="cancel", at=_passes(random)))
    return (*acts, TimedAct(what="end", at=_passes(random), end=random.choice(ends)))


def _random_act(random: Random, ends: tuple[str, ...]) -> TimedAct:
    what = random.choice(ACTS)
    end = random.choice(ends) if what == "nest" and random.random() < 0.3 else ""
    return TimedAct(what=what, at=_passes(random), number=random.choice((1, 1, 2, 3, 5)), end=end)


def _passes(random: Random) -> int:
    return random.choice((0, 0, 1, random.randint(0, MOST_STEPS), SETTLED))


class SubscriberPlayer:
    """Plays acts on one subscriber: it signals as its publisher, and calls its hooks."""

    def __init__(self, stage: SubscriberStage, script: Script) -> None:
        self._stage = stage
        self._acts: tuple[TimedAct, ...] = script.acts
        self.upstream = stage.manual_publisher(when_requested=self._signal_inside_request)
        self.sent: list[Any] = []
        self.end: tuple[str, Any] | None = None
        self.wanted = 0
        """Elements that the hook was told to request."""
        self.was_told_to_cancel = False
        self._nested: TimedAct | None = None
        self._is_nested = False

    async def play(self) -> None:
        """Subscribe the subscriber and play all acts. Checkpoints."""
        if self._acts[0].what == "nest":
            # Elements then also come inside a request that is made inside on_subscribe.
            self._nested = self._acts[0]
        await self._stage.attach(self.upstream)
        for act in self._acts:
            if act.at == SETTLED:
                await self._stage.settle()
            for _ in range(act.at):
                await trio.lowlevel.checkpoint()
            await self._play_act(act)
        self._nested = None
        await self._stage.settle()

    async def request(self, n: int) -> None:
        """Tell the subscriber to request, if it has the hook. Checkpoints."""
        if not (self.was_told_to_cancel or TRIGGERS_REQUEST.lack(type(self._stage))):
            self.wanted += n
            # draft rule D2.1: the downstream subscription of a processor may have ended.
            with suppress(InvalidStateError):
                await resolve(self._stage.trigger_request(n))

    async def _play_act(self, act: TimedAct) -> None:
        if act.what == "emit":
            self._emit(act.number)
        elif act.what == "nest":
            self._nested = act
        elif act.what == "request":
            await self.request(act.number)
        elif act.what == "cancel":
            if not TRIGGERS_CANCEL.lack(type(self._stage)):
                self.was_told_to_cancel = True
                with suppress(InvalidStateError):  # draft rule D3.1, as above
                    await resolve(self._stage.trigger_cancel())
        else:
            self._signal_end(act.end)

    def _signal_inside_request(self, _: ManualPublisher, __: int) -> None:
        """Signal before the request returns.
        A request inside one of these signals only raises the demand (rule 3.3).
        """
        act = self._nested
        if act is not None and not self._is_nested:
            self._nested, self._is_nested = None, True
            self._emit(act.number)
            self._signal_end(act.end)
            self._is_nested = False

    def _emit(self, most: int) -> None:
        for _ in range(most):
            if self.is_over or not self.upstream.outstanding or len(self.sent) >= MOST_ELEMENTS:
                break
            self.sent.append(self._stage.create_element(len(self.sent)))
            self.upstream.emit(self.sent[-1])

    def _signal_end(self, end: str) -> None:
        if not end or self.is_over:
            return
        if end == "on_complete":
            self.end = (end, None)
            self.upstream.complete()
        else:
            self.end = (end, ValueError("the source failed"))
            self.upstream.fail(self.end[1])

    @property
    def is_over(self) -> bool:
        """Whether the stream has ended, or the subscriber has cancelled."""
        return self.upstream.subscription.over or self.upstream.cancelled


class SubscriberModelStage(SubscriberStage):
    """The steps of the checks that compare a subscriber with the model."""

    abstract = True

    async def play_on_subscribers(self) -> None:
        """Play random scripts on fresh subscribers; end the check with the shortest that fails.
        Checkpoints.
        """
        ends = tuple(end for end in ENDS if end != "on_error" or not self.recovers)
        sent: list[int] = []

        async def play(script: Script) -> str:
            player = SubscriberPlayer(self, script)
            self.seen.clear()
            await player.play()
            seen = await self._differs_from_model(player)
            sent.append(len(player.sent))
            await self.finish_upstream(player.upstream)
            return seen

        await play_random_scripts(self, lambda seed: _script(seed, ends), play)
        self.require_evidence(any(sent), "no element was requested in any script, so none was sent")

    async def _differs_from_model(self, player: SubscriberPlayer) -> str:
        """Return how what the handlers saw differs from the model, or an empty text.
        Checkpoints.
        """
        upstream = player.upstream
        if upstream.violations:
            return str(upstream.violations[0])
        # A processor's elements may wait for demand downstream.
        await player.request(len(player.sent) + 1)
        await self.settle_all(lambda: len(self.seen))
        while (
            player.end is None
            and upstream.requested < player.wanted
            and (fed := await self.feed(upstream, 1))
        ):
            player.sent += fed
        if upstream.violations:
            return str(upstream.violations[0])
        if not upstream.cancelled and player.end is None and upstream.requested < player.wanted:
            return (
                f"it was told to request {player.wanted} in all, but requested {upstream.requested}"
            )
        return self._handlers_differ(player) if self.reports else ""

    def _handlers_differ(self, player: SubscriberPlayer) -> str:
        sent, seen = player.sent, self.seen_elements
        cancelled = player.was_told_to_cancel or player.upstream.cancelled
        whole = not cancelled and (player.end is None or player.end[0] == "on_complete")
        # An error may overtake elements, and after a cancel none is due. Those that are seen come
        # in order, from the first one on.
        if not _same(seen, sent if whole else sent[: len(seen)]):
            return f"{shown(sent)} were signalled, but the handlers saw {shown(seen)}"
        ends = [(name, value) for name, value in self.seen if name != "on_next"]
        due = [player.end] if player.end else []
        if not _same_ends(ends, due) and not (cancelled and not ends):
            return (
                f"{player.end[0] if player.end else 'no end'} was signalled, but the handlers saw "
                f"{[name for name, _ in ends] or 'none'}"
            )
        if ends and self.seen[-1][0] == "on_next":
            return f"the handlers saw {shown(self.seen[-1][1])} after {ends[-1][0]}"
        return ""


def _script(seed: int, ends: tuple[str, ...]) -> Script:
    return Script(acts=random_acts(seed, ends), length=0, setting="a stream on command", seed=seed)


def _same(first: list[Any], second: list[Any]) -> bool:
    return len(first) == len(second) and all(
        one is other or one == other for one, other in zip(first, second, strict=True)
    )


def _same_ends(ends: list[tuple[str, Any]], due: list[tuple[str, Any]]) -> bool:
    return len(ends) == len(due) and all(
        name == wanted and value is error
        for (name, value), (wanted, error) in zip(ends, due, strict=True)
    )
