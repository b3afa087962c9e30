"""Type-checked by mypy and pyright, never run: the pipelines that people write, without
annotations, and the types that follow.

Each line is one pipeline. The only ones where mypy knows less than pyright are in inferred.py.
"""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any, TypeGuard, TypeVar, assert_type

import trio

import penstock
from penstock import Source, Stream, Topic, from_iterable, generate, ops
from penstock.core import Scope
from penstock.streams.ops import Operator, OperatorBase

A = TypeVar("A")


@dataclass(frozen=True)
class Quote:
    """An element class of the user."""

    symbol: str
    price: float
    size: int


async def numbers() -> AsyncIterator[int]:
    """An async generator function."""
    yield 1


async def ticks(symbol: str) -> AsyncIterator[Quote]:
    """An async generator function with an argument."""
    yield Quote(symbol, 1.0, 1)


def is_even(number: int) -> bool:
    """A plain predicate."""
    return number % 2 == 0


def larger(one: int, other: int) -> int:
    """A plain function for scan."""
    return max(one, other)


async def is_known(quote: Quote) -> bool:
    """An async predicate."""
    return quote.symbol != ""


def is_text(element: int | str) -> TypeGuard[str]:
    """A predicate that narrows a type."""
    return isinstance(element, str)


async def fetch(number: int) -> Quote:
    """An async function of an element."""
    return Quote(str(number), 1.0, number)


async def fetch_all(number: int) -> list[Quote]:
    """An async function that returns a stream for an element."""
    return [await fetch(number)]


async def fallback(error: Exception) -> list[Quote]:
    """An async function of an error."""
    return []


async def running(total: float, number: int) -> float:
    """An async function for scan."""
    return total + number


# --- operators of other packages


def smoothed(source: Source[int]) -> Source[float]:
    """A function from a source to a source."""
    return source.scan(lambda mean, n: (mean + n) / 2, 0.0)


def in_pairs(source: Source[A]) -> Source[tuple[A, A]]:
    """A function for sources of every type."""
    return source.batch(2).map(lambda pair: (pair[0], pair[1]))


def above(limit: float) -> Callable[[Source[Quote]], Source[Quote]]:
    """A function that returns an operator."""
    return lambda source: source.filter(lambda quote: quote.price > limit)


class ToSymbol(OperatorBase[Quote, str]):
    """An operator class."""

    def attach(
        self, source: Source[Quote], subscriber: penstock.Subscriber[str], scope: Scope
    ) -> None:
        """Begin."""
        source.map(lambda quote: quote.symbol).attach(subscriber, scope)


# --- methods


def selecting(ints: Source[int], quotes: Source[Quote], mixed: Source[int | str]) -> None:
    """Operators that leave elements out keep the type; a TypeGuard narrows it."""
    assert_type(ints.filter(lambda n: n > 1), Source[int])
    assert_type(ints.filter(is_even).take(3), Source[int])
    assert_type(ints.skip(1).take_while(lambda n: n < 100), Source[int])
    assert_type(quotes.filter(is_known), Source[Quote])
    assert_type(quotes.filter(lambda quote: quote.size > 10).first(), Source[Quote])
    assert_type(quotes.first(lambda quote: quote.symbol == "EURUSD"), Source[Quote])
    assert_type(quotes.distinct_until_changed(), Source[Quote])
    assert_type(quotes.distinct_until_changed(lambda quote: quote.price), Source[Quote])
    assert_type(quotes.take_while(is_known).skip(2), Source[Quote])
    assert_type(mixed.filter(is_text), Source[str])
    assert_type(mixed.filter(is_text).map(str.upper), Source[str])
    assert_type(mixed.filter(lambda element: isinstance(element, str)), Source[int | str])


def transforming(ints: Source[int], quotes: Source[Quote], anything: Source[Any]) -> None:
    """The type of a map is what its function returns, awaited if it is async."""
    assert_type(ints.map(str), Source[str])
    assert_type(ints.map(lambda n: n / 2), Source[float])
    assert_type(ints.map(lambda n: (n, str(n))), Source[tuple[int, str]])
    assert_type(ints.map(lambda n: {"number": n}), Source[dict[str, int]])
    assert_type(ints.map(lambda n: [n] * n).map(len), Source[int])
    assert_type(ints.map("{:>5}".format), Source[str])
    assert_type(ints.map(fetch), Source[Quote])
    assert_type(ints.map(fetch).map(lambda quote: quote.price), Source[float])
    assert_type(
        quotes.map(lambda quote: (quote.symbol, quote.price)).map(lambda pair: pair[1]),
        Source[float],
    )
    assert_type(
        quotes.map(lambda quote: quote.symbol.lower()).distinct_until_changed(), Source[str]
    )
    assert_type(ints.scan(lambda total, n: total + n, 0), Source[int])
    assert_type(ints.scan(lambda total, n: total + n / 2, 0.0), Source[float])
    assert_type(ints.scan(lambda found, n: [*found, n], [0]), Source[list[int]])
    assert_type(ints.scan(max, 0), Source[int])
    assert_type(ints.scan(running, 0.0), Source[float])
    assert_type(quotes.scan(lambda high, quote: max(high, quote.price), 0.0).skip(1), Source[float])
    assert_type(quotes.tap(print).map(lambda quote: quote.size), Source[int])
    assert_type(quotes.tap(lambda quote: quote.symbol), Source[Quote])
    assert_type(anything.map(str), Source[str])
    assert_type(anything.filter(lambda element: element > 1).take(3), Source[Any])


def holding(ints: Source[int], quotes: Source[Quote]) -> None:
    """A batch is a list; the other operators that hold elements keep the type."""
    assert_type(ints.batch(10), Source[list[int]])
    assert_type(ints.batch(10, 0.5).map(lambda batch: sum(batch) / len(batch)), Source[float])
    assert_type(ints.batch(10, seconds=0.5).flat_map(lambda batch: batch), Source[int])
    assert_type(quotes.batch(3).map(lambda batch: batch[-1].price), Source[float])
    assert_type(ints.buffer(100).map(str), Source[str])
    assert_type(quotes.latest(), Source[Quote])
    assert_type(quotes.latest(on_drop=lambda quote: quote.symbol), Source[Quote])
    assert_type(quotes.drop(on_drop=print).map(lambda quote: quote.size), Source[int])


def timing(quotes: Source[Quote]) -> None:
    """The clock changes no types."""
    assert_type(quotes.debounce(0.5).throttle(1.0).timeout(10.0), Source[Quote])
    assert_type(quotes.throttle(0.1).map(lambda quote: quote.price), Source[float])
    assert_type(penstock.interval(1.0).take(3).map(lambda tick: f"tick {tick}"), Source[str])
    assert_type(penstock.timer(5.0).flat_map(lambda _: numbers), Source[int])


def joining(ints: Source[int], quotes: Source[Quote], names: Source[str]) -> None:
    """A join has the union, or the tuple, of the element types of its sources."""
    assert_type(ints.merge(["a"]), Source[int | str])
    assert_type(ints.merge(numbers, names), Source[int | str])
    assert_type(ints.merge(numbers), Source[int])
    assert_type(ints.concat(["a"], ["b"]).take(2), Source[int | str])
    assert_type(ints.zip(names), Source[tuple[int, str]])
    assert_type(ints.zip(names, [1.5]).map(lambda row: row[2]), Source[float])
    assert_type(ints.zip(names, quotes, numbers), Source[tuple[int, str, Quote, int]])
    assert_type(names.combine_latest(quotes), Source[tuple[str, Quote]])
    assert_type(
        names.combine_latest(quotes, numbers).map(lambda row: row[1].price * row[2]), Source[float]
    )
    assert_type(ints.flat_map(lambda n: [str(n)]), Source[str])
    assert_type(ints.flat_map(lambda n: range(n)), Source[int])  # noqa: PLW0108  # a lambda is the point
    assert_type(ints.flat_map(fetch_all, concurrency=2), Source[Quote])
    assert_type(ints.flat_map(penstock.single), Source[int])
    assert_type(names.flat_map(lambda name: generate(ticks, name)), Source[Quote])
    assert_type(names.flat_map(ticks).filter(lambda quote: quote.price > 1), Source[Quote])
    assert_type(ints.flat_map(lambda n: from_iterable([n]).map(str)), Source[str])


def recovering(quotes: Source[Quote], ints: Source[int]) -> None:
    """A source that goes on after an error adds its type."""
    assert_type(quotes.retry(3), Source[Quote])
    assert_type(
        quotes.retry(None, backoff=0.1, when=ConnectionError, consecutive=True), Source[Quote]
    )
    assert_type(
        quotes.retry(3, when=lambda error: "again" in str(error)).map(lambda quote: quote.size),
        Source[int],
    )
    assert_type(ints.on_error_resume([0]), Source[int])
    assert_type(ints.on_error_resume(lambda error: [str(error)]), Source[int | str])
    assert_type(quotes.on_error_resume(fallback), Source[Quote])
    assert_type(ints.on_error_resume(numbers).take(3), Source[int])


def beginning(
    channel: "trio.MemoryReceiveChannel[bytes]",
    publisher: penstock.Publisher[float],
    topic: Topic[Quote],
) -> None:
    """Whatever makes a source, its methods know the element type."""
    assert_type(from_iterable([1, 2]).map(lambda n: n * 1.5), Source[float])
    assert_type(generate(numbers).map(lambda n: n * 1.5), Source[float])
    assert_type(generate(ticks, "EURUSD").map(lambda quote: quote.price), Source[float])
    assert_type(penstock.as_source(numbers).filter(lambda n: n > 1), Source[int])
    assert_type(penstock.as_source(range(3)).map(lambda n: str(n)), Source[str])  # noqa: PLW0108  # a lambda is the point
    assert_type(penstock.from_channel(channel).map(lambda data: data.decode()), Source[str])
    assert_type(penstock.from_publisher(publisher).filter(lambda x: x > 0.5), Source[float])
    assert_type(penstock.single("a").map(len), Source[int])
    assert_type(topic.latest().map(lambda quote: quote.price), Source[float])
    assert_type(
        penstock.remote("tcp://127.0.0.1:7000/lines", serializer="text").map(str).take(3),
        Source[str],
    )
    assert_type(penstock.pipe(numbers).map(lambda n: n / 2), Source[float])


def newer_operators(ints: Source[int], quotes: Source[Quote], names: Source[str]) -> None:
    """Operators that join, repeat and sum up."""
    assert_type(ints.pairwise().map(lambda pair: pair[1] - pair[0]), Source[int])
    assert_type(ints.reduce(lambda total, n: total + n, 0), Source[int])
    assert_type(ints.reduce(running, 0.0), Source[float])
    assert_type(ints.start_with("ready"), Source[int | str])
    assert_type(ints.start_with(0).take(3), Source[int])
    assert_type(
        names.switch_map(lambda name: generate(ticks, name)).map(lambda quote: quote.price),
        Source[float],
    )
    assert_type(ints.switch_map(fetch_all), Source[Quote])
    assert_type(
        quotes.with_latest_from(names, numbers).map(lambda row: (row[0].price, row[1], row[2])),
        Source[tuple[float, str, int]],
    )
    assert_type(
        quotes.take_until(penstock.timer(1.0)).filter(lambda quote: quote.size > 1), Source[Quote]
    )
    assert_type(quotes.delay(1.0).sample(0.5).repeat(2), Source[Quote])
    assert_type(penstock.pipe(numbers, ops.pairwise(), ops.take(3)), Source[tuple[int, int]])
    assert_type(
        penstock.pipe(numbers, ops.reduce(larger, 0), ops.start_with("ready")), Source[int | str]
    )
    assert_type(
        penstock.pipe(numbers, ops.with_latest_from(names), ops.delay(1.0), ops.sample(1.0)),
        Source[tuple[int, str]],
    )
    assert_type(
        penstock.pipe(numbers, ops.switch_map(fetch_all), ops.take_until(names), ops.repeat(2)),
        Source[Quote],
    )


def over_a_network(peer: penstock.Peer) -> None:
    """A source of typed elements from a peer also has the methods."""
    assert_type(
        penstock.remote("tcp://127.0.0.1:7000/quotes", type=Quote).map(lambda quote: quote.price),
        Source[float],
    )
    assert_type(
        peer.source("quotes", type=Quote).filter(lambda quote: quote.size > 1).retry(3).batch(10),
        Source[list[Quote]],
    )
    assert_type(peer.source("numbers", type=int).pipe(smoothed).take(3), Source[float])


# --- pipes, and operators of other packages


def piping(ints: Source[int], names: Source[str]) -> None:
    """`pipe` also infers through operators without a function."""
    assert_type(penstock.pipe(numbers, ops.take(3)), Source[int])
    assert_type(penstock.pipe([1, 2, 3], ops.take(3), ops.skip(1), ops.batch(2)), Source[list[int]])
    assert_type(penstock.pipe(numbers, ops.map(str), ops.take(3)), Source[str])
    assert_type(
        penstock.pipe(numbers, ops.filter(is_even), ops.map(fetch), ops.filter(is_known)),
        Source[Quote],
    )
    assert_type(penstock.pipe(numbers, ops.distinct_until_changed(), ops.first()), Source[int])
    assert_type(penstock.pipe(numbers, ops.latest(), ops.map(str)), Source[str])
    assert_type(
        penstock.pipe(numbers, ops.drop(), ops.throttle(1.0), ops.timeout(5.0)), Source[int]
    )
    assert_type(penstock.pipe(numbers, ops.retry(3), ops.buffer(10)), Source[int])
    assert_type(penstock.pipe(numbers, ops.merge(names), ops.take(3)), Source[int | str])
    assert_type(penstock.pipe(numbers, ops.concat(names)), Source[int | str])
    assert_type(penstock.pipe(numbers, ops.zip(names), ops.take(2)), Source[tuple[int, str]])
    assert_type(
        penstock.pipe(numbers, ops.zip(names, [1.5]), ops.batch(2)),
        Source[list[tuple[int, str, float]]],
    )
    assert_type(penstock.pipe(numbers, ops.combine_latest(names)), Source[tuple[int, str]])
    assert_type(penstock.pipe(numbers, ops.on_error_resume(names)), Source[int | str])
    assert_type(penstock.pipe(numbers, ops.flat_map(fetch_all), ops.debounce(0.5)), Source[Quote])
    assert_type(penstock.pipe(numbers, ops.scan(larger, 0), ops.tap(is_even)), Source[int])


def third_party(ints: Source[int], quotes: Source[Quote]) -> None:
    """Operators of other packages are inferred like those of penstock, in a pipe
    and in a chain of methods.
    """
    assert_type(ints.pipe(smoothed), Source[float])
    assert_type(ints.filter(is_even).pipe(smoothed).map(lambda mean: round(mean)), Source[int])  # noqa: PLW0108  # a lambda is the point
    assert_type(ints.pipe(in_pairs), Source[tuple[int, int]])
    assert_type(ints.pipe(smoothed, in_pairs).take(3), Source[tuple[float, float]])
    assert_type(quotes.pipe(above(1.5), ToSymbol()).map(len), Source[int])
    assert_type(quotes.pipe(above(1.5), ToSymbol(), ops.take(3), in_pairs), Source[tuple[str, str]])
    assert_type(penstock.pipe(numbers, ops.take(3), smoothed), Source[float])
    assert_type(penstock.pipe(numbers, smoothed, ops.take(3)), Source[float])
    assert_type(penstock.pipe(numbers, in_pairs, ops.take(3)), Source[tuple[int, int]])
    assert_type(penstock.pipe(numbers, ops.map(fetch), ToSymbol(), ops.batch(2)), Source[list[str]])
    assert_type(ToSymbol()(quotes).take(1), Source[str])
    assert_type(ops.take(3)(quotes), Source[Quote])


def lambdas_in_pipes() -> None:
    """A lambda inside `pipe` is accepted by mypy, which does not look into it.
    See inferred.py for pyright.
    """
    halves: Source[float] = penstock.pipe(numbers, ops.map(lambda n: n / 2))
    large: Source[int] = penstock.pipe(numbers, ops.filter(lambda n: n > 1), ops.take(3))
    sizes: Source[int] = penstock.pipe(
        numbers, ops.map(fetch), ops.map(lambda quote: quote.size), ops.distinct_until_changed()
    )
    newest: Source[Quote] = penstock.pipe(
        numbers,
        ops.map(fetch),
        ops.latest(on_drop=lambda quote: quote.size),
        ops.first(lambda quote: quote.size > 1),
    )
    texts: Source[str] = penstock.pipe(
        numbers, ops.flat_map(lambda n: [str(n)]), ops.tap(lambda text: text.upper())
    )
    assert_type(
        (halves, large, sizes, newest, texts),
        tuple[Source[float], Source[int], Source[int], Source[Quote], Source[str]],
    )


def annotated() -> None:
    """An operator may be kept in a variable, or in a list."""
    three: Operator[int, int] = ops.take(3)
    both: list[Operator[int, int]] = [three, ops.filter(is_even)]
    assert_type(penstock.pipe([1, 2], three, ops.map(str)), Source[str])
    assert_type(penstock.pipe([1, 2], *both), Source[Any])


# --- reading


async def reading(quotes: Source[Quote], nursery: trio.Nursery) -> None:
    """The loop variable and the results of the sinks have the type of the chain."""
    async with penstock.subscribe(quotes.map(lambda quote: quote.price).take(3)) as prices:
        assert_type(prices, Stream[float])
        async for price in prices:
            assert_type(price, float)
    async with penstock.subscribe(quotes.batch(2)) as batches:
        assert_type([batch async for batch in batches], list[list[Quote]])
    async with penstock.subscribe(penstock.pipe(numbers, ops.take(3), smoothed)) as means:
        assert_type(await anext(means), float)
    assert_type(await penstock.collect(quotes.zip(numbers)), list[tuple[Quote, int]])
    assert_type(await penstock.first(quotes.map(lambda quote: quote.symbol)), str)
    assert_type(await penstock.first(quotes.filter(is_known), default=None), Quote | None)
    assert_type(await penstock.for_each(quotes.tap(print), lambda quote: quote.size), int)
    assert_type(quotes.take(3).publisher(nursery), penstock.Publisher[Quote])


# --- mistakes


def mistakes(quotes: Source[Quote], ints: Source[int]) -> None:
    """A call that cannot work is an error in both."""
    quotes.map(lambda quote: quote.prise)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownLambdaType, reportUnknownMemberType]  # expected error: no such attribute
    quotes.filter(is_even)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType, reportCallIssue]  # expected error: a predicate of int
    quotes.pipe(smoothed)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]  # expected error: an operator for int
    ints.pipe(is_even)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]  # expected error: a function of one element
    penstock.pipe(["a"], ops.filter(is_even))  # type: ignore[list-item]  # pyright: ignore[reportArgumentType]  # expected error: text in a pipe of int
    ints.take("3")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]  # expected error: a number
