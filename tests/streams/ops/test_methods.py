"""The methods of `Source` are the operators:
the same names, parameters and first sentences, and the same streams.
"""

import inspect
import re
from collections.abc import Callable
from typing import Any

import pytest

from penstock.streams import Source, Topic, collect, from_iterable, ops, single, subscribe

NAMES = sorted(name for name in ops.__all__ if name.islower() and name not in {"pipe", "processor"})
"""Functions that are methods too."""

OWN = {"attach", "publisher", "pipe"}
"""The methods of a source that do not stand for an operator."""


def _parameters(function: Callable[..., Any]) -> list[tuple[str, Any, Any]]:
    """Return name, kind and default of each parameter, without `self`."""
    parameters = inspect.signature(function).parameters.values()
    return [(each.name, each.kind, each.default) for each in parameters if each.name != "self"]


@pytest.mark.parametrize("name", NAMES)
def test_each_operator_is_a_method_with_the_same_parameters(name: str) -> None:
    """Names, kinds and defaults agree, so a chain of methods can be rewritten as a pipe,
    and the other way round.
    """
    assert hasattr(Source, name), f"add the method {name} to Source in streams/_source.py"
    assert _parameters(getattr(Source, name)) == _parameters(getattr(ops, name))


@pytest.mark.parametrize("name", NAMES)
def test_the_docstring_of_a_method_is_the_first_sentence_of_its_operator(name: str) -> None:
    """An editor shows it. The whole promise is in the docstring of the operator."""
    promise = " ".join((inspect.getdoc(getattr(ops, name)) or "").split())
    first = re.match(r".*?\.(?= |$)", promise)
    assert first is not None
    assert " ".join((inspect.getdoc(getattr(Source, name)) or "").split()) == first[0]


@pytest.mark.parametrize("name", NAMES)
def test_a_method_passes_each_argument_to_its_operator(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No argument is lost or swapped. The result is what the operator returns for the source."""
    operator, method = getattr(ops, name), getattr(Source, name)
    passed: dict[str, Any] = {}
    behind = single("behind the operator")

    def spy(*args: Any, **kwargs: Any) -> Callable[[Source[Any]], Source[Any]]:
        passed.update(inspect.signature(operator).bind(*args, **kwargs).arguments)
        return lambda source: behind if source is before else source

    monkeypatch.setattr(ops, name, spy)
    before = single("before the operator")
    args: list[Any] = [before]
    kwargs: dict[str, Any] = {}
    expected: dict[str, Any] = {}
    for parameter, kind, _ in _parameters(method):
        value = object()
        if kind is inspect.Parameter.VAR_POSITIONAL:
            args += [value, name]
            expected[parameter] = (value, name)
        elif kind is inspect.Parameter.KEYWORD_ONLY:
            kwargs[parameter] = expected[parameter] = value
        else:
            args.append(value)
            expected[parameter] = value
    assert method(*args, **kwargs) is behind
    assert passed == expected


def test_a_source_has_no_other_methods() -> None:
    """A sink is a function and no method: `subscribe`, `collect`, `first` and `for_each` take
    everything that can be streamed.
    """
    public = {
        name
        for name, value in vars(Source).items()
        if inspect.isfunction(value) and not name.startswith("_")
    }
    assert public == set(NAMES) | OWN


async def test_a_chain_of_methods_is_the_pipe_of_the_same_operators() -> None:
    """The same elements in the same order, and the same repr."""
    chain = from_iterable([1, 2, 3, 4]).map(lambda n: n * 10).filter(lambda n: n > 10).take(2)
    piped = ops.pipe(
        [1, 2, 3, 4], ops.map(lambda n: n * 10), ops.filter(lambda n: n > 10), ops.take(2)
    )
    assert await collect(chain) == await collect(piped) == [20, 30]
    assert repr(chain) == repr(piped)


async def test_a_method_runs_nothing_and_its_source_stays_as_it_was() -> None:
    """A source is immutable: two chains may begin with the same source."""
    seen: list[int] = []
    source = from_iterable([1, 2, 3])
    observed, doubled = source.tap(seen.append), source.map(lambda n: n * 2)
    assert seen == []
    assert await collect(doubled) == [2, 4, 6]
    assert await collect(observed) == [1, 2, 3] == seen


async def test_a_topic_and_a_source_of_a_user_have_the_methods() -> None:
    """They are methods of the base class, so every source has them."""

    class Twice(Source[int]):
        def attach(self, subscriber: Any, scope: Any) -> None:
            single(2).attach(subscriber, scope)

    assert await collect(Twice().map(lambda n: n + 1)) == [3]
    topic = Topic[int](retain=1)
    await topic.publish(4)
    topic.complete()
    async with subscribe(topic.map(str)) as stream:
        assert [element async for element in stream] == ["4"]


def test_a_source_has_slots_before_and_behind_a_method() -> None:
    """The methods are attributes of the class. A source has no dictionary for them."""
    assert Source.__slots__ == ("__weakref__",)
    assert not hasattr(single(1), "__dict__")
    assert not hasattr(single(1).take(1), "__dict__")
