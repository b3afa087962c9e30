"""`OperatorBase`: the base class of operators with a stage, and the source that a call of one returns."""

from typing import Any

import pytest

from penstock import operators as ops
from penstock.core import Scope, Source, collect, single
from penstock.operators import Operator, OperatorBase


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
    """A class that derives from it by mistake fails when an object of it is made, and not when a stream begins."""
    with pytest.raises(TypeError, match=r"abstract.*__call__"):
        type("Nothing", (Operator,), {"attach": lambda *_: None})()


@pytest.mark.parametrize(
    "operator",
    [ops.take(1), ops.retry(1), ops.merge([1]), ops.concat([1]), ops.on_error_resume([1]), ops.batch(2), ops.zip([1]), ops.map(str)],
    ids=repr,
)
async def test_every_kind_of_operator_can_be_called(operator: Any) -> None:
    """The operators of penstock are functions from a source to a source, too."""
    assert isinstance(operator(single(1)), Source)
