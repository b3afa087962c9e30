"""Runs checks. Each has its own virtual run, under a nursery, with a watchdog in real time.
All recorded violations count.

Rules of this file

* A violation that any probe or manual publisher recorded fails the check,
  whether the check looks at it or not.
* If the run ends early for another reason (a crash in a task, too many signals, the watchdog), the
  check fails, and the result says why.
* Objects of a run do not outlive it: results hold only text.
"""

import time
from collections.abc import Callable, Collection
from contextlib import nullcontext
from math import inf
from typing import Final

import attrs
import trio

from penstock.api import UsageError
from penstock.testing import (
    ExpectationFailed,
    RunawaySignals,
    Transcript,
    WorkerThreads,
    run_virtual,
    settle,
)
from penstock_tck._asyncio_loop import asyncio_loop, lacks_asyncio_loop
from penstock_tck._call_clock import CallClock, call_seconds_of
from penstock_tck._capabilities import OWN_THREADS, missing_factory
from penstock_tck._check import Check, Kind, checks_of
from penstock_tck._declarations import unknown_declaration
from penstock_tck._environment import Environment
from penstock_tck._result import CheckResult, Outcome, result_of
from penstock_tck._verification import CheckFailed, Vacuous, Verification
from penstock_tck._watchdog import Watchdog, WatchdogExpired, start_watchdog

NO_LOOP: Final = "no running event loop"
"""What asyncio says to a call that needs its loop."""

ADVICE_FOR_LOOP: Final = (
    "this check has no loop of asyncio: if the object's tasks live in asyncio, declare "
    "on_asyncio = True"
)

MOST_WATCHDOGS: Final = 3
"""When the watchdog has ended this number of checks, no further check of the verification is run:
each would take the watchdog's seconds again.
"""


def run_checks(
    verification: type[Verification], only: Collection[str] | None = None
) -> list[CheckResult]:
    """Run the checks of a verification class, or those named in `only`, and return a result for
    each. Does not need pytest.

    Raises UsageError if the class declares something impossible, or if `only` names a check
    that it does not have.
    """
    validate(verification)
    checks = {check.name: check for check in checks_of(verification)}
    for name in only or ():
        if name not in checks:
            raise UsageError(
                f"{verification.__name__} has no check {name!r}, so it would not be run"
            )
    results: list[CheckResult] = []
    for name, check in checks.items():
        if only is None or name in only:
            ended = sum(result.was_ended for result in results)
            results.append(
                run_check(verification, check)
                if ended < MOST_WATCHDOGS
                else give_up(verification, check)
            )
    return results


def give_up(verification: type[Verification], check: Check) -> CheckResult:
    """Return the result of a check that is not run, because the watchdog had to end
    MOST_WATCHDOGS checks before it.
    """
    seen = f"not run: {MOST_WATCHDOGS} checks of {verification.__name__} did not end by themselves"
    return result_of(verification, check, Outcome.NOT_ESTABLISHED, seen=seen)


def run_check(verification: type[Verification], check: Check) -> CheckResult:
    """Run one check under each of its scheduler seeds, up to the first failure,
    and return the result.
    """
    missing = check.missing(verification)
    if missing:
        return result_of(verification, check, Outcome.NOT_APPLICABLE, seen=missing)
    result = _run_once(verification, check, 0)
    for seed in range(1, check.seeds):
        if result.failed:
            break
        result = _run_once(verification, check, seed)
    return _apply_waiver(verification, check, result)


def validate(verification: type[Verification]) -> None:
    """Raise UsageError if a verification class declares something impossible, or something
    that the kit does not know.
    """
    if unknown := unknown_declaration(verification):
        raise UsageError(f"{verification.__name__} {unknown}")
    lacking = missing_factory(verification)
    if lacking:
        raise UsageError(
            f"{verification.__name__} {lacking}: the kit verifies the object that it returns"
        )
    if verification.on_asyncio and (missing := lacks_asyncio_loop()):
        raise UsageError(f"{verification.__name__} declares {missing}")
    if getattr(verification, "max_elements", 0) < 0:
        raise UsageError(f"{verification.__name__} declares max_elements below 0")
    if (
        not 0
        <= getattr(verification, "min_elements", 0)
        <= getattr(verification, "max_elements", 0)
    ):
        raise UsageError(
            f"{verification.__name__} declares min_elements that are below 0, or above max_elements"
        )
    if verification.recursion_bound < 1:
        raise UsageError(
            f"{verification.__name__} declares recursion_bound below 1; a call of on_next itself "
            "counts as 1"
        )
    seeds = getattr(verification, "model_seeds", None)
    if seeds is not None and seeds < 1:
        raise UsageError(
            f"{verification.__name__} declares model_seeds below 1: without a script, the model "
            "checks nothing"
        )
    optional = {check.name for check in checks_of(verification) if check.optional}
    for name in set(verification.waivers) - optional:
        raise UsageError(
            f"{verification.__name__} waives {name}, which is no optional check of its profile; "
            "only those can be waived"
        )


def _apply_waiver(
    verification: type[Verification], check: Check, result: CheckResult
) -> CheckResult:
    reason = verification.waivers.get(check.name)
    if reason is None:
        return result
    if result.failed:
        return attrs.evolve(result, outcome=Outcome.WAIVED, seen=f"waived: {reason}. {result.seen}")
    return attrs.evolve(
        result,
        outcome=Outcome.FAILED,
        seen=f"it passes, so the waiver ({reason}) is no longer needed: remove it",
    )


# ---------------------------------------------------------------------- one run


def _run_once(verification: type[Verification], check: Check, seed: int) -> CheckResult:
    transcript = Transcript()
    faults: list[str] = []
    hints: list[str] = []
    ends: list[_End] = []
    began = time.perf_counter()
    quiet = verification.quiet_seconds if verification.other_threads else 0.0
    threads = WorkerThreads(seconds=verification.thread_seconds, quiet=quiet)
    with start_watchdog(verification.watchdog_seconds) as watchdog:
        try:
            ends.append(
                run_virtual(
                    _run_body,
                    verification,
                    check,
                    transcript,
                    hints,
                    watchdog,
                    threads,
                    seed=seed,
                    threads=threads,
                )
            )
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:
            # boundary: the implementation runs here; an exception of any kind becomes the result.
            faults = _describe(error)
    if watchdog.expired:
        faults.insert(0, watchdog.explanation())
        if threads.seen:
            faults.insert(
                1,
                (
                    "a thread works for a task: if it waits for demand, declare thread_seconds, "
                    "after which it counts as idle"
                ),
            )
    faults += hints
    broken = [str(violation) for violation in transcript.violations]
    if not verification.on_asyncio and any(NO_LOOP in text for text in (*broken, *faults)):
        faults.append(ADVICE_FOR_LOOP)
    # An expectation that fails because of a violation repeats the text of the violation.
    # Five violations show the pattern; a publisher that floods makes thousands.
    faults = [
        *broken[:5],
        *(fault for fault in faults if not any(violation in fault for violation in broken)),
    ]
    end = ends[0] if ends else _End()
    return result_of(
        verification,
        check,
        _outcome(check, faults, end),
        seen="\n".join(dict.fromkeys(faults)) or end.observed or end.missing,
        transcript=transcript.text() if faults or end.observed else "",
        seconds=time.perf_counter() - began,
        seed=seed,
        left_open=end.left_open,
        broken=_broken(verification, transcript),
        was_ended=watchdog.expired,
    )


def _broken(verification: type[Verification], transcript: Transcript) -> tuple[str, ...] | None:
    """Return the rules whose breach was recorded, None if none was. The draft has no number for
    some: then the check's rules are blamed.
    """
    rules = dict.fromkeys(
        violation.rule
        for violation in transcript.violations
        if violation.rule in verification.profile.rules
    )
    return tuple(rules) or None


@attrs.frozen(kw_only=True)
class _End:
    """How the body of a check ended:
    its observation, the evidence that it missed, and the probes that it left open.
    """

    observed: str = ""
    missing: str = ""
    left_open: tuple[str, ...] = ()


def _outcome(check: Check, faults: list[str], end: _End) -> Outcome:
    if faults:
        return Outcome.FAILED
    if end.missing:
        return Outcome.VACUOUS
    return Outcome.OBSERVED if check.kind is Kind.OBSERVATION else Outcome.PASSED


async def _run_body(
    verification: type[Verification],
    check: Check,
    transcript: Transcript,
    hints: list[str],
    watchdog: Watchdog,
    threads: WorkerThreads,
) -> _End:
    """Run the body of the check under a fresh nursery; return how it ended.
    `hints` gets what a failure may come from.
    """
    end = _End()  # it stays so if the watchdog cancels the nursery
    async with (
        asyncio_loop() if verification.on_asyncio else nullcontext(),
        trio.open_nursery() as nursery,
    ):
        stage = verification()
        if not OWN_THREADS.lack(verification):
            threads.until_idle = stage.until_threads_idle
        stage.env = Environment(
            nursery,
            transcript,
            verification.profile,
            within=verification.settle_seconds,
            any_thread=verification.other_threads,
            threads=threads,
            calls=CallClock(call_seconds_of(verification)),
        )
        watchdog.cancel_on_alarm(
            nursery.cancel_scope,
            excused=lambda: stage.env.calls.seconds,
            # With other threads the run may look again and again at what they do.
            progress=None if verification.other_threads else _progress_of(transcript),
        )
        observed, missing = None, ""
        try:
            observed = await getattr(stage, check.name)()
        except Vacuous as vacuous:
            missing = str(vacuous)
        except (CheckFailed, ExpectationFailed):
            hints += _hints(verification)
            raise
        # Signals that come after the end of the body are also judged.
        await settle()
        end = _End(
            observed=str(observed or ""), missing=missing, left_open=tuple(stage.env.left_open())
        )
        nursery.cancel_scope.cancel()
    return end


def _progress_of(transcript: Transcript) -> Callable[[], object]:
    """Return a function whose value changes with each signal, each call and each tick of the
    clock.
    """
    clock = trio.lowlevel.current_clock()
    return lambda: (transcript.steps, clock.current_time())


def _hints(verification: type[Verification]) -> list[str]:
    """Return what to declare if a task sleeps at this moment for longer than the check has
    waited.
    """
    seconds = trio.lowlevel.current_statistics().seconds_to_next_deadline
    if not verification.settle_seconds < seconds < inf:
        return []
    return [
        (
            f"a task sleeps for {seconds:.3g} s more: if an element takes its time, declare "
            "settle_seconds, the longest time between two"
        )
    ]


def _describe(error: BaseException) -> list[str]:
    if isinstance(error, BaseExceptionGroup):
        return [words for inner in error.exceptions for words in _describe(inner)]
    if isinstance(error, ExpectationFailed):
        return [error.seen]
    if isinstance(error, CheckFailed):
        return [str(error)]
    if isinstance(error, RunawaySignals):
        return [f"it had to be stopped: {error}"]
    if isinstance(error, (trio.Cancelled, WatchdogExpired)):
        return []
    return [f"{type(error).__name__} escaped: {error}"]
