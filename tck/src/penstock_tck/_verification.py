"""The base of all verifications: a profile, an environment, a settling time, waivers,
and methods that fail a check.
"""

import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, ClassVar, NoReturn, TypeVar

import trio

from penstock.testing import ManualPublisher, ManualSubscriber, is_dropped, referrers, settle, shown
from penstock_tck._capabilities import optional_hook
from penstock_tck._environment import Environment
from penstock_tck._profile import MODERN, Profile

T = TypeVar("T")


class CheckFailed(AssertionError):
    """A check saw something that breaks its rules. The text says what."""


class Vacuous(Exception):
    """A check ran to its end, but nothing came that it could have judged.
    The text says what was missing.
    """


class Verification:
    """The base of all verifications.
    Subclass `PublisherVerification`, `SubscriberVerification` or `ProcessorVerification`.

    One instance serves one run of one check. The runner sets `env` before it calls a factory.
    """

    profile: ClassVar[Profile] = MODERN
    """Which generation of the standard is verified: `MODERN` or `DRAFT`."""
    settle_seconds: ClassVar[float] = 0.0
    """What "eventually" means here:
    when all tasks are blocked, or after this many virtual seconds more.
    """
    watchdog_seconds: ClassVar[float] = 5.0
    """Real seconds after which a run of one check is ended. Only an endless run needs them."""
    thread_seconds: ClassVar[float] = 5.0
    """Real seconds after which a thread that works for a task (`trio.to_thread.run_sync`) counts
    as idle: it may wait for demand.
    """
    other_threads: ClassVar[bool] = False
    """Whether signals and calls may come from other threads than the run's, one after the other."""
    on_asyncio: ClassVar[bool] = False
    """Whether the tasks of the object are tasks of asyncio. Its calls and signals are made where a
    loop of asyncio runs, on virtual time.
    """
    quiet_seconds: ClassVar[float] = 0.02
    """With `other_threads`: real seconds in which nothing must happen before all is settled."""
    recursion_bound: ClassVar[int] = 1
    """How deep calls of on_next may be nested (rule 3.3)."""
    model_seeds: ClassVar[int | None] = None
    """How many random scripts a check compares with its model; None:
    300, or what a second of the processor permits.
    """
    waivers: ClassVar[Mapping[str, str]] = {}
    """Optional checks that may fail, each with the reason.
    A waiver that is no longer needed fails.
    """
    abstract: ClassVar[bool] = False
    """True in the body of a class that is only a base for others: it is not collected itself."""

    factories: ClassVar[tuple[str, ...]] = ()
    """The methods of which a class must define one."""

    env: Environment

    @optional_hook
    async def until_threads_idle(self) -> None:
        """Return when your own threads have nothing more to do.
        With this hook, `quiet_seconds` is not needed.
        """

    # ------------------------------------------------------------------ for check bodies

    def probe(self, **hooks: Any) -> ManualSubscriber:
        """Return a fresh recording subscriber; `hooks` as in
        `penstock.testing.ManualSubscriber`.
        """
        return self.env.subscriber(**{"recursion_bound": self.recursion_bound, **hooks})

    def manual_publisher(self, **hooks: Any) -> ManualPublisher:
        """Return a fresh publisher that emits on command; `hooks` as in
        `penstock.testing.ManualPublisher`.
        """
        return self.env.publisher(**hooks)

    def fail(self, seen: str) -> NoReturn:
        """End the check. `seen` gives the observed and the expected behaviour."""
        raise CheckFailed(seen)

    def verify(self, holds: object, seen: str) -> None:
        """End the check with `seen` unless `holds`."""
        if not holds:
            raise CheckFailed(seen)

    def require_evidence(self, came: object, missing: str) -> None:
        """End the check as vacuous unless something came that it could judge.
        `missing` says what did not come.
        """
        if not came:
            raise Vacuous(missing)

    def note(self, text: str) -> None:
        """Write a line into the transcript."""
        self.env.transcript.add("tck", text)

    async def settle(self) -> None:
        """Let "eventually" pass: until all tasks are blocked, then for `settle_seconds`, and until
        all tasks are blocked again. Checkpoints.
        """
        await settle()
        if self.settle_seconds:
            await trio.sleep(self.settle_seconds)
            await settle()

    async def settle_all(self, progress: Callable[[], int]) -> None:
        """Settle, and again while that brings progress: with `settle_seconds`, a slow stream
        needs them several times. Checkpoints.
        """
        before = -1
        while before < (before := progress()):
            await self.settle()
            if not self.settle_seconds:
                return

    def verify_dropped(self, reference: Any, what: str) -> None:
        """End the check unless the object of the weak reference is gone.
        The message names the objects that refer to it.
        """
        if not is_dropped(reference):
            self.fail(
                f"{what} is still referred to by "
                f"{'; '.join(referrers(reference)) or 'an object that could not be found'}"
            )

    def expect_raise(self, expected: type[Exception] | None, call: Any, *arguments: Any) -> None:
        """Call it, and end the check unless it raises `expected` (None:
        unless it returns normally).
        """
        words = f"{getattr(call, '__name__', 'the call')}({', '.join(map(shown, arguments))})"
        try:
            call(*arguments)
        except Exception as error:
            # boundary: the implementation's code runs here, and its exception is judged.
            self.note(f"{words} raised {shown(error)}")
            if expected is None or not isinstance(error, expected):
                self.fail(f"{words} raised {shown(error)}, but {_allowed(expected)}")
            return
        if expected is not None:
            self.fail(f"{words} returned normally, but {_allowed(expected)}")


def _allowed(expected: type[Exception] | None) -> str:
    return "it must return normally" if expected is None else f"it must raise {expected.__name__}"


async def resolve(product: T | Awaitable[T]) -> T:
    """Return the product of a factory; await it if the factory is async."""
    return await product if inspect.isawaitable(product) else product
