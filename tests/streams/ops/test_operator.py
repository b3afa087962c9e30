"""`OperatorBase`: the base class of operators with a stage, and the source
that a call of one returns.
"""

from collections.abc import Callable
from typing import Any

import pytest

from penstock.core import Scope
from penstock.streams import Source, collect, ops, single
from penstock.streams.ops import Operator, OperatorBase


class Doubled(OperatorBase[int, int]):
    """Pass on each element times two."""

    def attach(self, source: Source[int], subscriber: Any, scope: Scope) -> None:
        source.map(lambda n: n * 2).attach(subscriber, scope)

    def __repr__(self) -> str:
        return "doubled"


async def test_an_operator_called_with_a_source_returns_a_source() -> None:
    """An operator is a function from a source to a source."""
    doubled = Doubled()(single(4))
    assert isinstance(doubled, Source)
    assert await collect(doubled) == [8]
    assert repr(doubled) == "<source single> | doubled"


async def test_the_operator_attaches_anew_for_each_subscriber() -> None:
    """The result of a call is a blueprint."""
    doubled = Doubled()(single(4))
    assert [await collect(doubled), await collect(doubled)] == [[8], [8]]


def test_an_operator_class_must_have_attach() -> None:
    """A class without it fails when an object of it is made."""
    with pytest.raises(TypeError, match=r"abstract.*attach"):
        type("Nothing", (OperatorBase,), {})()


def test_the_type_of_operators_is_no_base_class() -> None:
    """A class that derives from it by mistake fails when an object of it is made, and not
    when a stream begins.
    """
    with pytest.raises(TypeError, match=r"abstract.*__call__"):
        type("Nothing", (Operator,), {"attach": lambda *_: None})()


@pytest.mark.parametrize(
    "operator",
    [
        ops.take(1),
        ops.retry(1),
        ops.merge([1]),
        ops.concat([1]),
        ops.on_error_resume([1]),
        ops.batch(2),
        ops.zip([1]),
        ops.map(str),
    ],
    ids=repr,
)
async def test_every_kind_of_operator_can_be_called(operator: Any) -> None:
    """The operators of penstock are also functions from a source to a source."""
    assert isinstance(operator(single(1)), Source)


SHOWN: list[tuple[Callable[[], Any], str]] = [
    (lambda: ops.batch(3), "batch(3)"),
    (lambda: ops.batch(3, 0.5), "batch(3, seconds=0.5)"),
    (lambda: ops.buffer(2), "buffer(2)"),
    (lambda: ops.combine_latest([1]), "combine_latest of 2 sources"),
    (lambda: ops.concat([1]), "concat of 2 sources"),
    (lambda: ops.debounce(0.5), "debounce(0.5)"),
    (lambda: ops.delay(2), "delay(2)"),
    (lambda: ops.distinct_until_changed(len), "distinct_until_changed(len)"),
    (ops.drop, "drop()"),
    (lambda: ops.filter(bool), "filter(bool)"),
    (ops.first, "take(1)"),
    (lambda: ops.first(bool), "first(bool)"),
    (lambda: ops.flat_map(single), "flat_map(single)"),
    (lambda: ops.group_by(len), "group_by(len)"),
    (ops.latest, "latest()"),
    (lambda: ops.map(str), "map(str)"),
    (lambda: ops.merge([1]), "merge of 2 sources"),
    (lambda: ops.on_error_resume([1]), "on_error_resume(<source list>)"),
    (ops.pairwise, "pairwise()"),
    (lambda: ops.reduce(max, 0), "reduce(max)"),
    (lambda: ops.repeat(3), "repeat(3)"),
    (lambda: ops.repeat(None), "repeat(None)"),
    (lambda: ops.retry(2), "retry(2)"),
    (lambda: ops.sample(1), "sample(1)"),
    (lambda: ops.scan(max, 0), "scan(max)"),
    (lambda: ops.skip(2), "skip(2)"),
    (lambda: ops.start_with(1, 2), "start_with of 2 elements"),
    (lambda: ops.switch_map(single), "switch_map(single)"),
    (lambda: ops.take(1), "take(1)"),
    (lambda: ops.take_until([1]), "take_until of 2 sources"),
    (lambda: ops.take_while(bool), "take_while(bool)"),
    (lambda: ops.tap(print), "tap(print)"),
    (lambda: ops.throttle(1), "throttle(1)"),
    (lambda: ops.timeout(1), "timeout(1)"),
    (lambda: ops.window(3), "window(3)"),
    (lambda: ops.window(3, seconds=0.5), "window(3, seconds=0.5)"),
    (lambda: ops.with_latest_from([1]), "with_latest_from of 2 sources"),
    (lambda: ops.zip([1]), "zip of 2 sources"),
]


@pytest.mark.parametrize(("make", "text"), SHOWN, ids=[text for _, text in SHOWN])
def test_each_operator_shows_its_call(make: Callable[[], Any], text: str) -> None:
    """Errors and reports name an operator in this way.
    One that joins sources shows how many they are.
    """
    assert repr(make()) == f"<operator {text}>"


def test_all_operators_are_shown() -> None:
    """A new operator needs a row above. The others are those that need a nursery or a recorder."""
    classes = {name for name in ops.__all__ if name[0].isupper()}
    shown = {text.split("(")[0].split(" ")[0] for _, text in SHOWN}
    assert set(ops.__all__) - classes - shown == {"pipe", "processor", "record", "share"}
