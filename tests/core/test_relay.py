"""A relay passes signals down and demand up, forgets both sides at the end, and passes batches
on to subscribers that accept them.
"""

import gc
import importlib
import pkgutil
import weakref
from typing import Any

import pytest

import penstock
from penstock.api import OptionalMethods
from penstock.core import CountingRelay, ElementRelay, Relay
from tests.core._foreign import CallRecorder, Recorder

ENDS = {"on_error": (KeyError("upstream"),), "on_complete": ()}


class Counting(CountingRelay[Any]):
    """Records how many elements pass at a time."""

    def __init__(self, subscriber: Any) -> None:
        super().__init__(subscriber)
        self.counts: list[int] = []

    def _on_elements(self, count: int) -> None:
        self.counts.append(count)


class ManyRecorder(Recorder):
    """Accepts lists of elements."""

    def on_next_many(self, elements: Any, /) -> None:
        self.log.append(("on_next_many", list(elements)))


class PackedRecorder(ManyRecorder):
    """Also accepts packed elements."""

    def on_element_size(self, size: int, /) -> None:
        self.log.append(("on_element_size", size))

    def on_next_packed(self, count: int, elements: bytes, /) -> None:
        self.log.append(("on_next_packed", count, elements))


def connected(kind: type[Any], recorder: Recorder) -> tuple[Any, CallRecorder]:
    """Return a relay to `recorder`, and the subscription above it."""
    relay, calls = kind(recorder), CallRecorder()
    relay.on_subscribe(calls)
    return relay, calls


@pytest.mark.parametrize("kind", [Relay, CountingRelay, ElementRelay])
@pytest.mark.parametrize("end", ENDS)
def test_signals_go_down_and_demand_goes_up(kind: type[Any], end: str) -> None:
    """The relay is the subscription of the subscriber below it."""
    relay, calls = connected(kind, recorder := Recorder())
    assert recorder.subscription is relay
    relay.request(2)
    relay.on_next("a")
    getattr(relay, end)(*ENDS[end])
    assert calls.log == [("request", 2)]
    assert recorder.log == [("on_subscribe",), ("on_next", "a"), (end, *ENDS[end])]


@pytest.mark.parametrize("kind", [Relay, CountingRelay, ElementRelay])
@pytest.mark.parametrize("first", [*ENDS, "cancel"])
def test_calls_after_the_end_do_nothing(kind: type[Any], first: str) -> None:
    """Rules 1.7, 3.6, 3.7; a cancel goes up once."""
    relay, calls = connected(kind, recorder := Recorder())
    getattr(relay, first)(*ENDS.get(first, ()))
    log, above = list(recorder.log), list(calls.log)
    relay.on_next("late")
    relay.on_next_many(["late"])
    relay.on_next_sized([b"late"], 4)
    relay.on_next_packed(1, b"late")
    relay.on_element_size(4)
    relay.on_fact("late")
    assert relay.on_content(None, "") is relay
    assert (relay.held(), relay.takes_runs, relay.lender) == (0, False, None)
    relay.on_error(KeyError())
    relay.on_complete()
    relay.request(1)
    relay.cancel()
    assert (recorder.log, calls.log) == (log, above)
    assert above == ([("cancel",)] if first == "cancel" else [])


def test_a_publisher_that_answers_a_cancel_with_an_end_reaches_no_subscriber() -> None:
    """The relay forgets the subscriber before it cancels."""
    relay: Relay[Any] = Relay(recorder := Recorder())
    relay.on_subscribe(CallRecorder(cancel=relay.on_complete))
    relay.cancel()
    assert recorder.log == [("on_subscribe",)]


def test_a_subscription_after_the_cancel_is_cancelled() -> None:
    """It is not needed any more, and must not be left open."""
    relay: Relay[Any] = Relay(recorder := Recorder())
    relay.cancel()
    relay.on_subscribe(calls := CallRecorder())
    assert (recorder.log, calls.log) == ([], [("cancel",)])


@pytest.mark.parametrize("end", [*ENDS, "cancel"])
def test_an_ended_relay_keeps_no_neighbour(end: str) -> None:
    """Rules 1.6, 3.13: either neighbour may keep the relay."""
    relay, calls = connected(Relay, recorder := Recorder())
    references = [weakref.ref(recorder), weakref.ref(calls)]
    getattr(relay, end)(*ENDS.get(end, ()))
    del recorder, calls
    gc.collect()
    assert [reference() for reference in references] == [None, None]


@pytest.mark.parametrize(
    ("recorder", "expected", "counts"),
    [
        (
            Recorder(),
            [("on_next", b"ab"), ("on_next", b"cd"), ("on_next", b"ef"), ("on_next", b"gh")],
            [1, 1, 1, 1],
        ),
        (
            ManyRecorder(),
            [("on_next_many", [b"ab", b"cd"]), ("on_next_many", [b"ef", b"gh"])],
            [2, 2],
        ),
        (
            PackedRecorder(),
            [
                ("on_element_size", 2),
                ("on_next_many", [b"ab", b"cd"]),
                ("on_next_packed", 2, b"efgh"),
            ],
            [2, 2],
        ),
    ],
    ids=["one by one", "many", "packed"],
)
def test_batches_are_passed_on_as_the_subscriber_accepts_them(
    recorder: Recorder, expected: list[Any], counts: list[int]
) -> None:
    """Elements keep their order, and each is counted once."""
    relay, _ = connected(Counting, recorder)
    relay.on_element_size(2)
    relay.on_next_many([b"ab", b"cd"])
    relay.on_next_packed(2, b"efgh")
    assert recorder.log == [("on_subscribe",), *expected]
    assert relay.counts == counts


def test_a_cancel_inside_an_element_of_a_batch_drops_the_rest() -> None:
    """Rule 2.8 would allow the rest; a relay inside a pipe promises silence."""
    relay, calls = connected(
        Counting, recorder := Recorder(on_next=lambda _: recorder.subscription.cancel())
    )
    relay.on_next_many("abc")
    assert (recorder.elements, relay.counts, calls.log) == (["a"], [1], [("cancel",)])


class Offering(PackedRecorder):
    """Has every optional method."""

    takes_runs = True

    def on_next_sized(self, elements: Any, size: int, /) -> None:
        self.log.append(("on_next_sized", list(elements), size))

    def on_content(self, serializer: str | None, schema: str, /) -> Any:
        self.log.append(("on_content", serializer, schema))
        return self

    def on_fact(self, fact: object, /) -> None:
        self.log.append(("on_fact", fact))

    def held(self) -> int:
        return 7

    @property
    def lender(self) -> Any:
        return self


def test_a_relay_passes_on_every_optional_method() -> None:
    """A subscriber gets from a relay what it would get without one."""
    relay, _ = connected(Relay, recorder := Offering())
    relay.on_content("json", "Price")
    relay.on_element_size(2)
    relay.on_fact("fact")
    relay.on_next_sized([b"ab"], 2)
    relay.on_next_many([b"cd"])
    relay.on_next_packed(2, b"efgh")
    assert recorder.log == [
        ("on_subscribe",),
        ("on_content", "json", "Price"),
        ("on_element_size", 2),
        ("on_fact", "fact"),
        ("on_next_sized", [b"ab"], 2),
        ("on_next_many", [b"cd"]),
        ("on_next_packed", 2, b"efgh"),
    ]
    assert (relay.held(), relay.takes_runs, relay.lender) == (7, True, recorder)


def test_a_subscriber_may_take_its_own_place() -> None:
    """`on_content` returns who gets the elements from then on; the relay stays."""
    relay, _ = connected(Relay, recorder := Offering())
    recorder.on_content = lambda serializer, schema: other  # type: ignore[method-assign]  # another answer
    other = Recorder()
    assert relay.on_content("json", "") is relay
    relay.on_next("a")
    assert other.elements == ["a"]


def test_a_subscriber_that_cannot_read_the_elements_may_cancel() -> None:
    """Then the relay is over, and keeps neither neighbour."""
    relay, calls = connected(Relay, recorder := Offering())

    def refuse(serializer: str | None, schema: str) -> Any:
        relay.cancel()
        return recorder

    recorder.on_content = refuse  # type: ignore[method-assign]  # another answer
    relay.on_content("json", "")
    relay.on_next("a")
    assert (recorder.elements, calls.log) == ([], [("cancel",)])


def test_a_relay_for_each_element_gets_all_of_them_alone() -> None:
    """They may come in any form, and none passes by it."""
    relay, _ = connected(ElementRelay, recorder := Offering())
    relay.on_next_sized([b"ab"], 2)
    relay.on_next_many([b"cd"])
    relay.on_next_packed(2, b"efgh")
    assert recorder.elements == [b"ab", b"cd", b"ef", b"gh"]
    assert (relay.takes_runs, relay.lender) == (False, None)


def test_a_relay_that_counts_is_passed_by_no_element() -> None:
    """It lends no batch, and tells its subclass each number once."""
    relay, _ = connected(Counting, Offering())
    relay.on_next_sized([b"ab"], 2)
    relay.on_next_packed(2, b"efgh")
    assert (relay.counts, relay.lender) == ([1, 2], None)


ELEMENTS = {"on_next", "on_next_many", "on_next_sized", "on_next_packed", "lender"}
"""The methods through which elements come, or pass by."""


def relays() -> list[type[Any]]:
    """Return every class of penstock that is a relay."""
    for module in pkgutil.walk_packages(penstock.__path__, "penstock."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    found, kinds = [], [Relay]
    while kinds:
        for kind in kinds.pop().__subclasses__():
            kinds.append(kind)
            if kind.__module__.startswith("penstock."):
                found.append(kind)
    return found


def test_no_element_passes_by_a_relay_that_has_to_do_with_elements() -> None:
    """A subclass of Relay changes all of these methods, or none of them."""
    bases = {ElementRelay}  # its subclass says what to do with an element
    for kind in set(relays()) - bases:
        changed = {name for name in ELEMENTS if getattr(kind, name) is not getattr(Relay, name)}
        assert changed in (set(), ELEMENTS), kind


def test_the_protocol_lists_what_a_relay_passes_on() -> None:
    """A new optional method is added to both."""
    assert {name for name in vars(OptionalMethods) if not name.startswith("_")} <= vars(
        Relay
    ).keys()
