"""The runner: a run that ends early is a failure with a text, a violation always fails,
and waivers are checked.

Checks run on a MockClock; only the watchdog uses real time.
"""

import itertools
from typing import Any

import pytest
import trio
from penstock_tck import (
    CountingPublisher,
    Outcome,
    ProcessorVerification,
    PublisherVerification,
    SubscriberVerification,
    Verification,
    _call_clock,
    check,
    checks_of,
    run_check,
    run_checks,
    validate,
)
from penstock_tck import _random_scripts as scripts

from penstock.api import UsageError
from penstock.streams import generate
from tck.tests._honest_publishers import HonestSubscription
from tck.tests._honest_verifications import HonestSynchronousPublisher

tck_verifies_nothing = "its verifications are run by run_checks"


class _Own(HonestSynchronousPublisher):
    """A verification with additional checks, each with a different end."""

    abstract = True
    watchdog_seconds = 0.2

    @check("1.1")
    async def sees_a_violation_and_does_not_look(self) -> None:
        """If this fails, look at nothing: it is made to fail."""
        probe = self.probe()
        probe.on_subscribe(self)
        probe.on_next(1)

    @check("1.1")
    async def spins_without_end(self) -> None:
        """If this fails, look at nothing: it is made to fail."""
        while True:
            pass

    @check("1.1")
    async def checkpoints_without_end(self) -> None:
        """If this fails, look at nothing: it is made to fail."""
        while True:
            await trio.lowlevel.checkpoint()

    @check("1.1")
    async def waits_without_end(self) -> None:
        """If this fails, look at nothing: it is made to fail."""
        await trio.Event().wait()

    @check("1.1")
    async def swallows_everything_without_end(self) -> None:
        """If this fails, look at nothing: it is made to fail."""
        for _ in range(3):
            try:
                while True:
                    pass
            except BaseException:
                continue

    @check("1.1")
    async def crashes_in_a_task(self) -> None:
        """If this fails, look at nothing: it is made to fail."""

        async def crash() -> None:
            raise KeyError("in a task")

        self.env.nursery.start_soon(crash)
        await trio.sleep(1)

    @check("1.1", seeds=4)
    async def fails_under_the_third_seed(self) -> None:
        """If this fails, look at nothing: it is made to fail."""
        _Own.runs += 1
        self.verify(_Own.runs < 3, "this was the third")

    @check("1.1", optional=True)
    async def fails_and_is_optional(self) -> None:
        """If this fails, look at nothing: it is made to fail."""
        self.fail("as it must")

    @check("1.1", optional=True)
    async def leaves_a_subscription_open(self) -> None:
        """If this fails, look at nothing: it passes, and leaves something open."""
        await self.open(3)

    runs = 0


def _result(name: str, verification: type[Any] = _Own) -> Any:
    (result,) = run_checks(verification, [name])
    return result


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("sees_a_violation_and_does_not_look", "element 1 arrived, but only 0 were requested"),
        ("spins_without_end", "something in it is endless"),
        ("checkpoints_without_end", "something in it is endless"),
        ("waits_without_end", "something in it is endless"),
        ("swallows_everything_without_end", "something in it is endless"),
        ("crashes_in_a_task", "KeyError escaped: 'in a task'"),
    ],
)
def test_a_run_that_ends_early_is_a_failure_with_a_reason(name: str, words: str) -> None:
    """Violations, endless loops, endless waits and crashes fail the check,
    and the message says which.
    """
    result = _result(name)
    assert result.outcome is Outcome.FAILED
    assert words in result.seen


@pytest.mark.parametrize("name", ["checkpoints_without_end", "waits_without_end"])
def test_a_run_ended_by_the_watchdog_has_one_reason(name: str) -> None:
    """The message does not name the cancelled body as a second fault."""
    assert "escaped" not in _result(name).seen


def test_a_message_has_rule_observation_hint_and_transcript() -> None:
    """The rule, the drive, the observation, where to look, and the transcript."""
    message = _result("sees_a_violation_and_does_not_look").message
    for part in (
        "rule 1.1 (MUST): A publisher never",
        "What was seen",
        "If this fails, look at",
        "<- on_next(1)",
        "!! rule 1.1",
    ):
        assert part in message


def test_a_check_runs_under_its_seeds_up_to_the_first_failure() -> None:
    """The result has the seed that failed."""
    _Own.runs = 0
    result = _result("fails_under_the_third_seed")
    assert (_Own.runs, result.seed, result.outcome) == (3, 2, Outcome.FAILED)


def test_a_waiver_excuses_an_optional_check_with_its_reason() -> None:
    """The outcome is "waived". The result has the reason and the observation."""
    excused = type("Excused", (_Own,), {"waivers": {"fails_and_is_optional": "we know"}})
    result = _result("fails_and_is_optional", excused)
    assert result.outcome is Outcome.WAIVED
    assert "we know" in result.seen
    assert "as it must" in result.seen


def test_a_waiver_that_is_not_needed_fails() -> None:
    """Otherwise waivers would outlive their reasons."""
    excused = type("Excused", (_Own,), {"waivers": {"leaves_a_subscription_open": "we thought so"}})
    assert "no longer needed" in _result("leaves_a_subscription_open", excused).seen


def test_only_optional_checks_can_be_waived() -> None:
    """A MUST cannot be waived."""
    excused = type("Excused", (_Own,), {"waivers": {"crashes_in_a_task": "please"}})
    with pytest.raises(UsageError, match="no optional check"):
        validate(excused)


@pytest.mark.parametrize(
    "declared",
    [
        {"max_elements": -1},
        {"recursion_bound": 0},
        {"min_elements": -1},
        {"min_elements": 3, "max_elements": 2},
        {"model_seeds": 0},
    ],
)
def test_impossible_declarations_are_refused(declared: dict[str, int]) -> None:
    """The error comes before any check is run."""
    with pytest.raises(UsageError, match="declares"):
        validate(type("Impossible", (HonestSynchronousPublisher,), declared))


def test_impossible_declarations_are_refused_without_pytest_too() -> None:
    """run_checks validates the class before the first check."""
    with pytest.raises(UsageError, match="declares"):
        run_checks(type("Impossible", (HonestSynchronousPublisher,), {"max_elements": -1}))


@pytest.mark.parametrize(
    ("base", "words"),
    [
        (PublisherVerification, "Forgot must define create_publisher"),
        (SubscriberVerification, "Forgot must define create_subscriber"),
        (ProcessorVerification, "Forgot must define create_processor, or override connect"),
    ],
)
def test_a_missing_factory_is_reported_before_any_check(
    base: type[Verification], words: str
) -> None:
    """It does not break a rule: if fifty checks failed for it,
    they would point at fifty wrong places.
    """
    with pytest.raises(UsageError, match=words):
        validate(type("Forgot", (base,), {}))


@pytest.mark.parametrize(
    ("base", "factory", "words"),
    [
        (
            PublisherVerification,
            "create_publisher",
            "returned None, which is no publisher: it has no subscribe()",
        ),
        (
            ProcessorVerification,
            "connect",
            "returned None, which is no publisher: it has no subscribe()",
        ),
        (
            SubscriberVerification,
            "create_subscriber",
            "create_subscriber() returned None, which is no subscriber: it has no on_subscribe()",
        ),
    ],
)
def test_a_factory_that_returns_none_is_named(
    base: type[Verification], factory: str, words: str
) -> None:
    """If a `return` was forgotten, the message names the factory."""
    broken = type("Broken", (base,), {factory: lambda *_: None})
    name = (
        "elements_are_requested_and_accepted"
        if base is SubscriberVerification
        else "requests_add_up"
    )
    (result,) = run_checks(broken, [name])
    assert words in result.seen
    assert result.failed


def test_an_unknown_check_name_is_refused() -> None:
    """Otherwise a misspelled name would run no check and report no failure."""
    with pytest.raises(UsageError, match="has no check 'requests_ad_up'"):
        run_checks(HonestSynchronousPublisher, ["requests_ad_up"])


def test_a_check_cannot_be_hidden() -> None:
    """A method with the name of a check would turn it off silently."""
    with pytest.raises(ValueError, match="hides a check"):
        checks_of(
            type("Hiding", (HonestSynchronousPublisher,), {"requests_add_up": lambda self: None})
        )


def test_a_missing_capability_is_named() -> None:
    """A check that does not apply says why."""

    class Small(PublisherVerification):
        max_elements = 1

        def create_publisher(self, elements: int) -> Any:
            return CountingPublisher(elements)

    result = run_check(
        Small, next(check for check in checks_of(Small) if check.name == "requests_add_up")
    )
    assert result.outcome is Outcome.NOT_APPLICABLE
    assert result.seen == "it declares max_elements = 1, and the check needs 2"


def test_a_subscription_that_a_check_leaves_open_is_reported() -> None:
    """The result names the probe whose subscription was neither cancelled nor ended."""
    assert _result("leaves_a_subscription_open").left_open == ("s1",)


@pytest.mark.parametrize("rules", [(), ("1.1", "D4.1"), ("9.9",)])
def test_a_check_cites_rules_of_one_generation(rules: tuple[str, ...]) -> None:
    """No rule, rules of both generations, and an unknown rule are refused."""
    with pytest.raises((ValueError, KeyError)):
        check(*rules)


def test_a_check_must_say_where_to_look() -> None:
    """A check without that sentence in its docstring is refused when it is defined."""

    async def silent(self: object) -> None:
        """Drives something."""

    with pytest.raises(ValueError, match="lacks a sentence"):
        check("1.1")(silent)


class _CountsScripts(HonestSynchronousPublisher):
    """Counts the publishers that it makes: one for each script."""

    made = 0

    def create_publisher(self, elements: int) -> object:
        type(self).made += 1
        return super().create_publisher(elements)


def test_a_slow_publisher_gets_fewer_random_scripts(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a second of the processor no script begins, but LEAST_SCRIPTS are played.
    A declared number is played in full.
    """
    clock = itertools.count(step=10)
    monkeypatch.setattr(scripts, "process_time", lambda: next(clock))
    for declared, played in ((None, scripts.LEAST_SCRIPTS), (50, 50)):
        verification = type("Counts", (_CountsScripts,), {"model_seeds": declared, "made": 0})
        (result,) = run_checks(verification, ["random_requests_and_cancels_follow_the_model"])
        assert result.outcome is Outcome.PASSED
        assert verification.made == played


@pytest.mark.parametrize(
    ("declared", "nearest"),
    [
        ({"max_element": 5}, "max_elements"),
        ({"multi_cast": True}, "multicast"),
        ({"create_fail_publisher": None}, "create_failed_publisher"),
    ],
)
def test_a_misspelt_declaration_is_refused_with_the_nearest_name(
    declared: dict[str, Any], nearest: str
) -> None:
    """Otherwise it would pass silently, and the checks that need it would not be run."""
    with pytest.raises(UsageError, match=f"did you mean {nearest}"):
        validate(type("Misspelt", (HonestSynchronousPublisher,), declared))


def test_a_class_may_have_names_of_its_own() -> None:
    """Only a name that looks like one of the kit is refused."""
    validate(
        type(
            "Own",
            (HonestSynchronousPublisher,),
            {"database_url": "", "connect_to_database": lambda self: None},
        )
    )


class _Spins(HonestSubscription):
    """request() never returns."""

    def request(self, n: int, /) -> None:
        while True:
            pass


def test_after_some_endless_checks_no_further_one_is_run() -> None:
    """Each would also take the seconds of the watchdog. The results say why they are missing."""
    spinning = type(
        "Spinning",
        (HonestSynchronousPublisher,),
        {"subscription_class": _Spins, "watchdog_seconds": 0.05},
    )
    results = run_checks(spinning)
    assert sum(result.was_ended for result in results) == 3
    not_run = [result for result in results if result.outcome is Outcome.NOT_ESTABLISHED]
    assert len(not_run) > 50
    assert "not run: 3 checks of Spinning did not end" in not_run[0].seen


def test_a_publisher_with_slow_calls_gets_fewer_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand calls of 10 ms would take 10 s."""
    now, requests = 0.0, 0

    class Slow(HonestSubscription):
        def request(self, n: int, /) -> None:
            nonlocal now, requests
            now += 0.01
            requests += 1
            super().request(n)

    monkeypatch.setattr(_call_clock, "perf_counter", lambda: now)
    slow = type("Slow", (HonestSynchronousPublisher,), {"subscription_class": Slow})
    assert _result("any_number_of_requests_is_supported", slow).outcome is Outcome.PASSED
    assert 200 <= requests < 210


def test_a_check_that_judged_nothing_is_vacuous() -> None:
    """The model of a stream without elements proves nothing about demand."""
    empty = type("Nothing", (HonestSynchronousPublisher,), {"max_elements": 0, "model_seeds": 3})
    result = _result("random_requests_and_cancels_follow_the_model", empty)
    assert (result.outcome, result.seen) == (
        Outcome.VACUOUS,
        "no stream of a script had an element",
    )


class _SubscribesTwice(HonestSubscription):
    """on_subscribe is called twice."""

    def begin(self) -> None:
        self.signal("on_subscribe", self)
        super().begin()


def test_a_failure_blames_the_rule_that_was_broken() -> None:
    """The rules of the check are not established:
    the message says so, and names the broken rule.
    """
    result = _result(
        "requests_add_up",
        type("Twice", (HonestSynchronousPublisher,), {"subscription_class": _SubscribesTwice}),
    )
    assert result.blamed == ("2.12",)
    assert "BROKEN: rule 2.12 (MUST)" in result.message
    assert "not established" in result.message


def test_a_recommendation_that_is_not_followed_blames_no_rule() -> None:
    """on_error("a text") need not be refused by rule 2.13, which speaks of None."""
    assert _result("fails_and_is_optional").blamed == ()


def test_a_long_transcript_is_shown_without_its_middle() -> None:
    """The first and the last lines are in the message; the result has more."""
    result = _result(
        "the_stack_does_not_grow_with_the_stream",
        type("Deep", (HonestSynchronousPublisher,), {"subscription_class": _OneShort}),
    )
    assert len(result.transcript.splitlines()) > 300
    assert len(result.message.splitlines()) < 100
    assert "lines left out" in result.message


class _OneShort(HonestSubscription):
    """The last of many elements does not come."""

    def due(self) -> bool:
        return super().due() and self.position < 1_400


class _Slow(PublisherVerification):
    """Its elements come half a second apart, and it does not say so."""

    abstract = True

    def create_publisher(self, elements: int) -> Any:
        async def slow():
            for number in range(elements):
                await trio.sleep(0.5)
                yield number

        return generate(slow).publisher(self.env.nursery)


class _DeclaredSlow(_Slow):
    abstract = True
    settle_seconds = 1.0


@pytest.mark.parametrize("name", ["requests_add_up", "unbounded_demand_is_supported"])
def test_a_failure_while_a_task_sleeps_names_the_declaration(name: str) -> None:
    """A slow publisher that is not declared as slow fails half of the checks:
    each says what to declare.
    """
    (result,), (declared,) = run_checks(_Slow, [name]), run_checks(_DeclaredSlow, [name])
    assert result.failed
    assert (
        "a task sleeps for 0.5 s more: if an element takes its time, declare settle_seconds"
        in result.seen
    )
    assert not declared.failed


def test_a_failure_that_nothing_sleeps_behind_names_no_declaration() -> None:
    """The advice would lead away from the fault."""

    class Empty(PublisherVerification):
        abstract = True

        def create_publisher(self, elements: int) -> Any:
            return generate(trio.sleep_forever).publisher(self.env.nursery)

    seen = [result.seen for result in run_checks(Empty) if result.failed]
    assert seen
    assert not [text for text in seen if "settle_seconds" in text]
