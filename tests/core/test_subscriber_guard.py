"""The edge makes true for a foreign subscriber, and against it, what a pipe takes for granted."""

import gc
import weakref

import pytest

from penstock.api import UNBOUNDED, IllegalDemand, RuleViolation
from penstock.core import SubscriberGuard
from tests.core._foreign import Calls, Heard, boom
from tests.core._helpers import Token, Unprintable

SIGNALS = {"on_subscribe": (), "on_next": (1,), "on_error": (KeyError("upstream"),), "on_complete": ()}
GARBAGE = [None, object(), 5, "subscriber", lambda: None, Heard]


class Line:
    """An edge between a scripted upstream and a listener, and what its hook was told."""

    def __init__(self, **hooks) -> None:
        self.told: list[Exception] = []
        self.upstream = Calls()
        self.heard = Heard(**hooks)
        self.edge: SubscriberGuard[int] = SubscriberGuard(self.heard, self.told.append)

    def open(self) -> "Line":
        self.edge.on_subscribe(self.upstream)
        return self

    def signal(self, name: str) -> None:
        getattr(self.edge, name)(*(SIGNALS[name] or ((self.upstream,) if name == "on_subscribe" else ())))


# --- subscribing


@pytest.mark.parametrize("garbage", GARBAGE, ids=lambda each: type(each).__name__)
def test_what_is_no_subscriber_is_a_type_error_and_nothing_is_attached(garbage) -> None:
    """Rule 1.9: there is nobody to signal on_error to; the message says what a subscriber has."""
    attached: list[object] = []
    with pytest.raises(TypeError) as caught:
        SubscriberGuard.between(attached.append, garbage, boom)
    assert str(caught.value) == (
        f"subscribe() was given {type(garbage).__name__!r}, which is no subscriber: "
        "it needs on_subscribe, on_next, on_error and on_complete (rule 1.9)"
    )
    assert attached == []


def test_an_attach_that_raises_at_once_greets_and_then_fails() -> None:
    """Rule 1.9: on_subscribe before on_error, always."""
    heard = Heard()
    SubscriberGuard.between(boom, heard, boom)
    assert [entry[0] for entry in heard.log] == ["on_subscribe", "on_error"]
    heard.subscription.request(1)
    heard.subscription.cancel()


def test_an_attach_that_raises_halfway_is_cancelled_and_fails() -> None:
    """What it had begun must not go on for nobody."""
    heard, upstream = Heard(), Calls()

    def attach(edge) -> None:
        edge.on_subscribe(upstream)
        boom()

    SubscriberGuard.between(attach, heard, boom)
    assert [entry[0] for entry in heard.log] == ["on_subscribe", "on_error"]
    assert upstream.log == [("cancel",)]


def test_an_attach_that_raises_after_the_end_changes_nothing() -> None:
    """Rule 1.7: silence after the end."""
    heard = Heard()

    def attach(edge) -> None:
        edge.on_subscribe(Calls())
        edge.on_complete()
        boom()

    SubscriberGuard.between(attach, heard, boom)
    assert heard.log == [("on_subscribe",), ("on_complete",)]


@pytest.mark.parametrize("signal", ["on_error", "on_complete"])
def test_an_end_without_a_beginning_is_given_one(signal: str) -> None:
    """Rule 1.9: on_subscribe first, whatever the pipe does."""
    line = Line()
    line.signal(signal)
    assert [entry[0] for entry in line.heard.log] == ["on_subscribe", signal]


def test_on_subscribe_is_signalled_once() -> None:
    """Rule 2.12, though the pipe greets twice."""
    line = Line().open()
    line.edge.on_subscribe(line.upstream)
    line.signal("on_complete")
    assert line.heard.log == [("on_subscribe",), ("on_complete",)]


# --- demand


def test_demand_is_passed_on_and_held_at_the_top() -> None:
    """Rules 3.8 and 3.17."""
    line = Line().open()
    for n in (1, UNBOUNDED, 2**70):
        line.edge.request(n)
    assert line.upstream.log == [("request", 1), ("request", UNBOUNDED), ("request", UNBOUNDED)]


@pytest.mark.parametrize("wrong", [0, -1, -(2**70), 1.0, True, None, "1"], ids=repr)
@pytest.mark.parametrize("place", ["on_subscribe", "on_next", "outside"])
def test_illegal_demand_cancels_above_and_fails_below(wrong, place: str) -> None:
    """Rule 3.9, from wherever it is called; rule 3.16: the call returns normally; rule 1.7: nothing comes after it."""
    ask = {} if place == "outside" else {place: lambda *_: line.heard.subscription.request(wrong)}
    line = Line(**ask)
    line.open()
    if place == "on_next":
        line.signal("on_next")
    elif place == "outside":
        line.edge.request(wrong)
    assert isinstance(line.heard.error, IllegalDemand)
    assert line.upstream.log == [("cancel",)]
    seen = list(line.heard.log)
    for name in SIGNALS:
        line.signal(name)
    line.edge.request(1)
    line.edge.cancel()
    assert (line.heard.log, line.told) == (seen, [])


def test_demand_before_there_is_anything_above_is_nothing() -> None:
    """Where attach failed, on_subscribe is our own; the subscriber may ask inside it, legally or not."""
    line = Line()
    line.edge.request(1)
    line.edge.request(0)
    assert line.heard.log == []


# --- cancelling


def test_cancel_goes_up_once_and_silence_comes_down() -> None:
    """Rules 3.5, 3.7, 3.12: at once, any number of times, and for good."""
    line = Line().open()
    line.edge.cancel()
    line.edge.cancel()
    line.edge.request(1)
    for name in SIGNALS:
        line.signal(name)
    assert line.upstream.log == [("cancel",)]
    assert line.heard.log == [("on_subscribe",)]


def test_cancel_before_there_is_anything_above_is_remembered() -> None:
    """The stream is over for the subscriber from then on."""
    line = Line()
    line.edge.cancel()
    line.open().signal("on_complete")
    assert line.heard.log == []


@pytest.mark.parametrize("end", ["on_error", "on_complete"])
def test_after_the_end_every_call_is_nothing(end: str) -> None:
    """Rules 1.6, 1.7, 3.6, 3.7: from either side."""
    line = Line().open()
    line.signal(end)
    seen = list(line.heard.log)
    for name in SIGNALS:
        line.signal(name)
    line.edge.request(0)
    line.edge.request(1)
    line.edge.cancel()
    assert (line.heard.log, line.upstream.log) == (seen, [])


def test_a_subscriber_that_cancels_in_a_signal_gets_no_further_one() -> None:
    """The stack below is unwound, nothing is signalled."""
    line = Line(on_next=lambda _: line.heard.subscription.cancel()).open()
    line.signal("on_next")
    line.signal("on_next")
    assert line.heard.elements == [1]
    assert line.upstream.log == [("cancel",)]


# --- a subscriber that raises


@pytest.mark.parametrize("signal", SIGNALS)
def test_a_subscriber_that_raises_is_cut_off_and_told_of_once(signal: str) -> None:
    """Rule 2.13: its stream ends, the hook hears of it with the cause, and it hears nothing any more."""
    line = Line(**{signal: boom})
    line.open()
    if signal != "on_subscribe":
        line.signal(signal)
    (violation,) = line.told
    assert isinstance(violation, RuleViolation)
    assert violation.rule == "2.13"
    assert str(violation) == (
        f"a subscriber raised ValueError('boom') in {signal}; a signal method must return normally. "
        "Its subscription was cancelled; to stop on purpose, call subscription.cancel()"
    )
    assert isinstance(violation.__cause__, ValueError)
    assert line.upstream.log == ([("cancel",)] if signal in ("on_subscribe", "on_next") else [])
    seen = list(line.heard.log)
    for name in SIGNALS:
        line.signal(name)
    line.edge.request(0)
    line.edge.request(1)
    line.edge.cancel()
    assert (line.heard.log, line.told) == (seen, [violation])


@pytest.mark.parametrize("signal", SIGNALS)
def test_an_exception_that_cannot_be_printed_is_told_all_the_same(signal: str) -> None:
    """The message about a fault must not be a fault of its own."""

    def raising(*_: object) -> None:
        raise Unprintable

    line = Line(**{signal: raising})
    line.open()
    if signal != "on_subscribe":
        line.signal(signal)
    assert [str(violation).split(" in ")[0] for violation in line.told] == ["a subscriber raised an unprintable 'Unprintable'"]


@pytest.mark.parametrize("signal", SIGNALS)
def test_an_interrupt_is_no_fault_of_the_subscribers(signal: str) -> None:
    """Ctrl-C may strike inside a signal; it goes on to where it is meant to go."""

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    line = Line(**{signal: interrupted})
    with pytest.raises(KeyboardInterrupt):
        line.open().signal(signal)
    assert line.told == []


# --- references


@pytest.mark.parametrize("how", ["cancel", "on_error", "on_complete", "illegal demand", "raising"])
def test_whatever_ends_the_stream_drops_both_sides(how: str) -> None:
    """Rules 1.6, 3.13: the edge may be kept by whoever likes, it keeps nobody."""
    edge: SubscriberGuard[int] = SubscriberGuard(Heard(**({"on_next": boom} if how == "raising" else {})), lambda _: None)
    upstream = Calls()
    upstream.token = Token()  # type: ignore[attr-defined]  # something that can be watched
    refs = [weakref.ref(edge._subscriber), weakref.ref(upstream.token)]  # type: ignore[type-var,attr-defined]  # the same
    edge.on_subscribe(upstream)
    del upstream
    if how == "cancel":
        edge.cancel()
    elif how == "illegal demand":
        edge.request(0)
    elif how == "raising":
        edge.on_next(1)
    else:
        getattr(edge, how)(*SIGNALS[how])
    gc.collect()
    assert [ref() for ref in refs] == [None, None]


def test_an_edge_says_whether_it_lives() -> None:
    """In a log, too."""
    line = Line().open()
    assert repr(line.edge) == "<edge live>"
    line.edge.cancel()
    assert repr(line.edge) == "<edge over>"
