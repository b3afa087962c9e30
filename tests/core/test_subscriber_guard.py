"""The guard makes true for a foreign subscriber, and about it, what a pipe takes for granted."""

import gc
import weakref
from collections.abc import Callable

import pytest

from penstock.api import UNBOUNDED, IllegalDemand, RuleViolation
from penstock.core import SubscriberGuard
from tests.core._foreign import CallRecorder, Recorder, boom
from tests.core._helpers import Token, Unprintable

SIGNALS = {
    "on_subscribe": (),
    "on_next": (1,),
    "on_error": (KeyError("upstream"),),
    "on_complete": (),
}
GARBAGE = [None, object(), 5, "subscriber", lambda: None, Recorder]


class GuardHarness:
    """A guard between a scripted upstream and a recording subscriber,
    and the reports of its hook.
    """

    def __init__(self, **hooks) -> None:
        self.reported: list[Exception] = []
        self.upstream = CallRecorder()
        self.recorder = Recorder(**hooks)
        self.guard: SubscriberGuard[int] = SubscriberGuard(self.recorder, self.reported.append)

    def open(self) -> "GuardHarness":
        self.guard.on_subscribe(self.upstream)
        return self

    def signal(self, name: str) -> None:
        getattr(self.guard, name)(
            *(SIGNALS[name] or ((self.upstream,) if name == "on_subscribe" else ()))
        )


# --- subscribing


@pytest.mark.parametrize("garbage", GARBAGE, ids=lambda each: type(each).__name__)
def test_an_object_that_is_not_a_subscriber_is_a_type_error(garbage) -> None:
    """Rule 1.9: on_error cannot be signalled.
    Nothing is attached, and the message says what a subscriber has.
    """
    attached: list[object] = []
    with pytest.raises(TypeError) as caught:
        SubscriberGuard.insert_between(attached.append, garbage, boom)
    assert str(caught.value) == (
        f"subscribe() was given {type(garbage).__name__!r}, which is no subscriber: "
        "it needs on_subscribe, on_next, on_error and on_complete (rule 1.9)"
    )
    assert attached == []


def test_an_attach_that_raises_at_once_signals_on_subscribe_and_on_error() -> None:
    """Rule 1.9: on_subscribe comes before on_error."""
    recorder = Recorder()
    SubscriberGuard.insert_between(boom, recorder, boom)
    assert [entry[0] for entry in recorder.log] == ["on_subscribe", "on_error"]
    recorder.subscription.request(1)
    recorder.subscription.cancel()


def test_an_attach_that_raises_halfway_is_cancelled_and_fails() -> None:
    """The stream that it had begun must not go on."""
    recorder, upstream = Recorder(), CallRecorder()

    def attach(guard) -> None:
        guard.on_subscribe(upstream)
        boom()

    SubscriberGuard.insert_between(attach, recorder, boom)
    assert [entry[0] for entry in recorder.log] == ["on_subscribe", "on_error"]
    assert upstream.log == [("cancel",)]


def test_an_attach_that_raises_after_the_end_changes_nothing() -> None:
    """Rule 1.7: no signal after the end."""
    recorder = Recorder()

    def attach(guard) -> None:
        guard.on_subscribe(CallRecorder())
        guard.on_complete()
        boom()

    SubscriberGuard.insert_between(attach, recorder, boom)
    assert recorder.log == [("on_subscribe",), ("on_complete",)]


@pytest.mark.parametrize("signal", ["on_error", "on_complete"])
def test_an_end_without_on_subscribe_gets_one(signal: str) -> None:
    """Rule 1.9: on_subscribe comes first, for every pipe."""
    harness = GuardHarness()
    harness.signal(signal)
    assert [entry[0] for entry in harness.recorder.log] == ["on_subscribe", signal]


def test_on_subscribe_is_signalled_once() -> None:
    """Rule 2.12, although the pipe calls it twice."""
    harness = GuardHarness().open()
    harness.guard.on_subscribe(harness.upstream)
    harness.signal("on_complete")
    assert harness.recorder.log == [("on_subscribe",), ("on_complete",)]


# --- demand


def test_demand_is_passed_on_and_limited_to_the_bound() -> None:
    """Rules 3.8 and 3.17."""
    harness = GuardHarness().open()
    for n in (1, UNBOUNDED, 2**70):
        harness.guard.request(n)
    assert harness.upstream.log == [("request", 1), ("request", UNBOUNDED), ("request", UNBOUNDED)]


@pytest.mark.parametrize("wrong", [0, -1, -(2**70), 1.0, True, None, "1"], ids=repr)
@pytest.mark.parametrize("place", ["on_subscribe", "on_next", "outside"])
def test_illegal_demand_cancels_above_and_fails_below(wrong, place: str) -> None:
    """Rule 3.9 inside each signal and outside; rule 3.16: the call returns normally; rule 1.7:
    no signal follows.
    """
    ask = (
        {}
        if place == "outside"
        else {place: lambda *_: harness.recorder.subscription.request(wrong)}
    )
    harness = GuardHarness(**ask)
    harness.open()
    if place == "on_next":
        harness.signal("on_next")
    elif place == "outside":
        harness.guard.request(wrong)
    assert isinstance(harness.recorder.error, IllegalDemand)
    assert harness.upstream.log == [("cancel",)]
    seen = list(harness.recorder.log)
    for name in SIGNALS:
        harness.signal(name)
    harness.guard.request(1)
    harness.guard.cancel()
    assert (harness.recorder.log, harness.reported) == (seen, [])


def test_demand_before_on_subscribe_does_nothing() -> None:
    """If attach failed, the guard itself calls on_subscribe,
    and the subscriber may request inside it, legally or not.
    """
    harness = GuardHarness()
    harness.guard.request(1)
    harness.guard.request(0)
    assert harness.recorder.log == []


# --- cancelling


def test_cancel_goes_up_once_and_no_signal_comes_down() -> None:
    """Rules 3.5, 3.7, 3.12: at once, however often it is called."""
    harness = GuardHarness().open()
    harness.guard.cancel()
    harness.guard.cancel()
    harness.guard.request(1)
    for name in SIGNALS:
        harness.signal(name)
    assert harness.upstream.log == [("cancel",)]
    assert harness.recorder.log == [("on_subscribe",)]


def test_cancel_before_on_subscribe_is_remembered() -> None:
    """The subscriber gets no signal from then on."""
    harness = GuardHarness()
    harness.guard.cancel()
    harness.open().signal("on_complete")
    assert harness.recorder.log == []


@pytest.mark.parametrize("end", ["on_error", "on_complete"])
def test_calls_after_the_end_do_nothing(end: str) -> None:
    """Rules 1.6, 1.7, 3.6, 3.7: from either side."""
    harness = GuardHarness().open()
    harness.signal(end)
    seen = list(harness.recorder.log)
    for name in SIGNALS:
        harness.signal(name)
    harness.guard.request(0)
    harness.guard.request(1)
    harness.guard.cancel()
    assert (harness.recorder.log, harness.upstream.log) == (seen, [])


def test_a_subscriber_that_cancels_in_a_signal_gets_no_further_one() -> None:
    """Also not from a pipe that goes on signalling."""
    harness = GuardHarness(on_next=lambda _: harness.recorder.subscription.cancel()).open()
    harness.signal("on_next")
    harness.signal("on_next")
    assert harness.recorder.elements == [1]
    assert harness.upstream.log == [("cancel",)]


# --- a subscriber that raises


@pytest.mark.parametrize("signal", SIGNALS)
def test_a_subscriber_that_raises_is_cancelled_and_reported_once(signal: str) -> None:
    """Rule 2.13: its stream ends, the hook gets a violation with the cause,
    and no signal follows.
    """
    harness = GuardHarness(**{signal: boom})
    harness.open()
    if signal != "on_subscribe":
        harness.signal(signal)
    (violation,) = harness.reported
    assert isinstance(violation, RuleViolation)
    assert violation.rule == "2.13"
    assert str(violation) == (
        f"a subscriber raised ValueError('boom') in {signal}; a signal method must return "
        "normally. Its subscription was cancelled; to stop on purpose, call subscription.cancel()"
    )
    assert isinstance(violation.__cause__, ValueError)
    assert harness.upstream.log == ([("cancel",)] if signal in ("on_subscribe", "on_next") else [])
    seen = list(harness.recorder.log)
    for name in SIGNALS:
        harness.signal(name)
    harness.guard.request(0)
    harness.guard.request(1)
    harness.guard.cancel()
    assert (harness.recorder.log, harness.reported) == (seen, [violation])


def test_a_subscriber_that_names_no_successor_is_cancelled_and_reported() -> None:
    """`on_content` returns the subscriber that gets the elements. If it returned None, no
    subscriber would, and the publisher would wait for demand without end.
    """
    harness = GuardHarness()
    harness.recorder.on_content = lambda _serializer, _schema: None  # type: ignore[attr-defined]  # an optional method
    harness.open()
    harness.guard.on_content("json", "")
    (violation,) = harness.reported
    assert "on_content() returned None" in str(violation)
    assert harness.upstream.log == [("cancel",)]


@pytest.mark.parametrize("signal", SIGNALS)
def test_an_exception_that_cannot_be_printed_is_reported(signal: str) -> None:
    """The message about an error must not raise another one."""

    def raising(*_: object) -> None:
        raise Unprintable

    harness = GuardHarness(**{signal: raising})
    harness.open()
    if signal != "on_subscribe":
        harness.signal(signal)
    assert [str(violation).split(" in ")[0] for violation in harness.reported] == [
        "a subscriber raised an unprintable 'Unprintable'"
    ]


@pytest.mark.parametrize("signal", SIGNALS)
def test_an_interrupt_is_not_caught(signal: str) -> None:
    """Ctrl-C may strike inside a signal. It is raised, and the hook is not called."""

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    harness = GuardHarness(**{signal: interrupted})
    with pytest.raises(KeyboardInterrupt):
        harness.open().signal(signal)
    assert harness.reported == []


# --- references


@pytest.mark.parametrize("how", ["cancel", "on_error", "on_complete", "illegal demand", "raising"])
def test_every_end_forgets_both_sides(how: str) -> None:
    """Rules 1.6, 3.13: an object that keeps the guard keeps neither side."""
    guard: SubscriberGuard[int] = SubscriberGuard(
        Recorder(**({"on_next": boom} if how == "raising" else {})), lambda _: None
    )
    upstream = CallRecorder()
    upstream.token = Token()  # type: ignore[attr-defined]  # an object that can be referred to weakly
    refs = [weakref.ref(guard._subscriber), weakref.ref(upstream.token)]  # type: ignore[type-var,attr-defined]  # the same
    guard.on_subscribe(upstream)
    del upstream
    if how == "cancel":
        guard.cancel()
    elif how == "illegal demand":
        guard.request(0)
    elif how == "raising":
        guard.on_next(1)
    else:
        getattr(guard, how)(*SIGNALS[how])
    gc.collect()
    assert [ref() for ref in refs] == [None, None]


def test_the_repr_shows_the_state() -> None:
    """A line of a log shows whether a guard is live or over."""
    harness = GuardHarness().open()
    assert repr(harness.guard) == "<subscriber guard live>"
    harness.guard.cancel()
    assert repr(harness.guard) == "<subscriber guard over>"


class _Holder(Recorder):
    def __init__(self, held: Callable[[], int]) -> None:
        super().__init__()
        self.held = held


def _fault() -> int:
    raise ZeroDivisionError("a fault of the subscriber")


@pytest.mark.parametrize(
    ("held", "expected", "faults"), [(lambda: 7, 7, 0), (_fault, 0, 1)], ids=["tells", "raises"]
)
def test_a_guard_tells_what_its_subscriber_keeps(
    held: Callable[[], int], expected: int, faults: int
) -> None:
    """The memory budget asks for it.
    A subscriber that raises counts as one that keeps nothing, and the fault is reported.
    """
    told: list[Exception] = []
    assert SubscriberGuard(_Holder(held), told.append).held() == expected
    assert len(told) == faults
    assert SubscriberGuard(Recorder(), told.append).held() == 0


def test_a_fact_that_a_subscriber_refuses_ends_its_stream() -> None:
    """Its exception is reported with the name of the method, and the publisher is cancelled."""

    class Refusing(Recorder):
        def on_fact(self, fact: object, /) -> None:
            raise LookupError(fact)

    reported: list[Exception] = []
    upstream = CallRecorder()
    guard: SubscriberGuard[int] = SubscriberGuard(Refusing(), reported.append)
    guard.on_subscribe(upstream)
    guard.on_fact("a fact")
    (error,) = reported
    assert "on_fact" in str(error)
    assert isinstance(error.__cause__, LookupError)
    assert upstream.log[-1] == ("cancel",)
