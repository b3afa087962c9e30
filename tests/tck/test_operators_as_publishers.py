"""The test kit over every operator as a publisher:
`pipe(source, op)`, where the source is a generator.

test_processors.py verifies each operator as a processor, over a publisher that signals inside
`request`. Operators that leave out elements, or end before their source, are verified over such a
publisher here too, because there they pass every element on.

To add an operator, add its rows to `ROWS`: a function that builds a pipe with the given number of
elements. Its source is `up(count)` or `up(count, error)`. A row also declares how the operator
differs from one that passes every element on.
Checks run on the kit's MockClock, so sleeping here takes no real time.
"""

from collections.abc import Callable
from itertools import count
from typing import Any

import attrs
import trio
from penstock_tck import CountingPublisher

import penstock
from penstock import UNBOUNDED, Source, ops, pipe
from tests.streams.ops.promises import NoTaps
from tests.tck._penstock_publisher import (
    PenstockPublisher,
    numbers,
    numbers_and_an_error,
    numbers_slowly,
)

PACE = 0.01
"""Virtual seconds between two elements of a slow source."""


@attrs.frozen(kw_only=True)
class Row:
    """One use of one operator."""

    name: str
    build: Callable[..., Source[Any]]
    """``build(up, elements)`` returns the pipe. If `faulty`, ``build(up, elements, error)``
    returns one that fails after the elements.
    """
    variant: str = ""
    faulty: bool = True
    selective: bool = False
    """True if it leaves out elements or ends early.
    Then it is also verified over a publisher without a task.
    """
    synchronous: int = 0
    """How many elements one request may signal before it returns, over a source
    that signals none then.
    """
    declares: dict[str, Any] = attrs.field(factory=dict)


# ---------------------------------------------------------------------- functions, plain and async


def _plain(function):
    return function


def _async(function):
    async def waiting(*args):
        await trio.lowlevel.checkpoint()
        return function(*args)

    return waiting


def _even(number):
    return number % 2 == 0


def _identity(number):
    return number


def _plain_and_async(name, build, **more):
    """Return the two rows of an operator with a plain or async function:
    ``build(f, up, elements, *error)``.
    """
    return [
        Row(name=name, variant="plain", build=lambda up, n, *e: build(_plain, up, n, *e), **more),
        Row(
            name=name,
            variant="async",
            build=lambda up, n, *e: build(_async, up, n, *e),
            **{
                **more,
                "declares": {
                    "synchronous_bound": 0,
                    "errors_overtake": True,
                    **more.get("declares", {}),
                },
            },
        ),
    ]


def _twice(n):
    return min(2 * n, UNBOUNDED)


def _failing_every_second_time(elements):
    """Return a source whose first, third, fifth … run fails at once."""
    beginnings = count()

    def begin():
        if next(beginnings) % 2 == 0:
            raise ConnectionError("this run fails")
        return numbers(elements)

    return penstock.generate(begin)


def _resumed_half_way(elements, source):
    half = elements // 2
    return pipe(
        penstock.generate(numbers_and_an_error, half, ValueError("go on")),
        ops.on_error_resume(source(elements - half)),
    )


_ERRORS_OVERTAKE = {"errors_overtake": True, "eager_completion": False}
_UNORDERED = {**_ERRORS_OVERTAKE, "multicast": False}
_SLOW = {"settle_seconds": 100.0, "eager_completion": False}
_LOSSY = {
    "multicast": False,
    "settle_seconds": 30.0,
    "max_elements": 20,
    "min_elements": 1,
    "eager_completion": True,
}

ROWS = [
    # --- _transform.py
    *_plain_and_async("map", lambda f, up, n, *e: pipe(up(n, *e), ops.map(f(_identity)))),
    *_plain_and_async("tap", lambda f, up, n, *e: pipe(up(n, *e), ops.tap(f(_identity)))),
    Row(name="record", build=lambda up, n, *e: pipe(up(n, *e), ops.record(NoTaps(), "x"))),
    *_plain_and_async(
        "scan",
        lambda f, up, n, *e: pipe(up(n, *e), ops.scan(f(lambda total, number: total + number), 0)),
    ),
    Row(
        name="pairwise", build=lambda up, n, *e: pipe(up(min(n + 1, UNBOUNDED), *e), ops.pairwise())
    ),
    *_plain_and_async(
        "reduce",
        lambda f, up, n, *e: pipe(
            up(n, *e), ops.reduce(f(lambda total, number: total + number), 0)
        ),
        faulty=False,
        declares={"eager_completion": False, "min_elements": 1, "max_elements": 1},
    ),
    # --- _select.py
    *_plain_and_async(
        "filter",
        lambda f, up, n, *e: pipe(up(_twice(n), *e), ops.filter(f(_even))),
        selective=True,
        declares={"eager_completion": False},
    ),
    Row(
        name="take",
        build=lambda up, n: pipe(up(UNBOUNDED), ops.take(n)),
        selective=True,
        faulty=False,
        declares={"eager_completion": True},
    ),
    Row(
        name="skip",
        build=lambda up, n, *e: pipe(up(min(n + 3, UNBOUNDED), *e), ops.skip(3)),
        selective=True,
        # If all elements are left out, a request is needed to see the end.
        declares={"eager_completion": False},
    ),
    *_plain_and_async(
        "take_while",
        lambda f, up, n: pipe(up(UNBOUNDED), ops.take_while(f(lambda number: number < n))),
        selective=True,
        faulty=False,
        declares={"eager_completion": False},
    ),
    *_plain_and_async(
        "first",
        lambda f, up, n: pipe(up(UNBOUNDED), ops.first(f(lambda number: number == 3))),
        selective=True,
        faulty=False,
        declares={"eager_completion": True, "min_elements": 1, "max_elements": 1},
    ),
    Row(
        name="first",
        variant="without a predicate",
        build=lambda up, n: pipe(up(n), ops.first()),
        faulty=False,
        declares={"eager_completion": True, "min_elements": 1, "max_elements": 1},
    ),
    *_plain_and_async(
        "distinct_until_changed",
        lambda f, up, n, *e: pipe(
            up(_twice(n), *e), ops.distinct_until_changed(f(lambda number: number // 2))
        ),
        selective=True,
        declares={"eager_completion": False},
    ),
    Row(
        name="distinct_until_changed",
        variant="without a key",
        build=lambda up, n, *e: pipe(up(n, *e), ops.distinct_until_changed()),
    ),
    # --- _combine.py
    Row(
        name="merge",
        build=lambda up, n, *e: pipe(
            up(n // 2, *e), ops.merge(penstock.from_iterable(range(n // 2, n)))
        ),
        faulty=False,
        synchronous=32,
        declares=_UNORDERED,
    ),
    Row(
        name="merge",
        variant="with an empty source",
        build=lambda up, n, *e: pipe(up(n, *e), ops.merge(penstock.empty())),
        synchronous=16,
        declares=_ERRORS_OVERTAKE,
    ),
    Row(
        name="zip",
        build=lambda up, n, *e: pipe(up(n, *e), ops.zip(penstock.generate(numbers, UNBOUNDED))),
        selective=True,
        synchronous=16,
        declares=_ERRORS_OVERTAKE,
    ),
    Row(
        name="combine_latest",
        build=lambda up, n, *e: pipe(penstock.single("first"), ops.combine_latest(up(n, *e))),
        synchronous=16,
        declares=_ERRORS_OVERTAKE,
    ),
    Row(
        name="with_latest_from",
        build=lambda up, n, *e: pipe(up(n, *e), ops.with_latest_from(penstock.single("latest"))),
        selective=True,
        synchronous=16,
        declares=_ERRORS_OVERTAKE,
    ),
    Row(
        name="take_until",
        build=lambda up, n, *e: pipe(up(n, *e), ops.take_until(penstock.Topic())),
    ),
    # --- _flatten.py
    Row(
        name="concat",
        build=lambda up, n, *e: pipe(up(n // 2), ops.concat(up(n - n // 2, *e))),
        declares={"eager_completion": False},
    ),
    Row(
        name="start_with",
        build=lambda up, n, *e: pipe(up(n - 1, *e), ops.start_with("first")) if n else up(n, *e),
        synchronous=1,
        faulty=False,
        declares={"eager_completion": False},
    ),
    Row(
        name="start_with",
        variant="no elements",
        build=lambda up, n, *e: pipe(up(n, *e), ops.start_with()),
    ),
    *_plain_and_async(
        "flat_map",
        lambda f, up, n, *e: pipe(up(n, *e), ops.flat_map(f(penstock.single))),
        declares=_UNORDERED,
    ),
    Row(
        name="flat_map",
        variant="to one long stream",
        build=lambda up, n, *e: pipe(
            penstock.single("all"), ops.flat_map(lambda _: up(n, *e), concurrency=1)
        ),
        synchronous=16,
        declares=_ERRORS_OVERTAKE,
    ),
    *_plain_and_async(
        "switch_map",
        lambda f, up, n, *e: pipe(penstock.single("all"), ops.switch_map(f(lambda _: up(n, *e)))),
        synchronous=16,
        declares=_ERRORS_OVERTAKE,
    ),
    # --- _window.py and _group_by.py
    Row(
        name="window",
        build=lambda up, n, *e: pipe(
            up(n, *e), ops.window(3), ops.flat_map(_identity, concurrency=1)
        ),
        synchronous=16,
        declares=_ERRORS_OVERTAKE,
    ),
    Row(
        name="window",
        variant="timed",
        build=lambda up, n, *e: pipe(
            up(n, *e), ops.window(3, 5), ops.flat_map(_identity, concurrency=1)
        ),
        synchronous=16,
        declares=_ERRORS_OVERTAKE,
    ),
    *_plain_and_async(
        "group_by",
        lambda f, up, n, *e: pipe(
            up(n, *e), ops.group_by(f(lambda number: number % 3)), ops.flat_map(_identity)
        ),
        synchronous=48,
        declares=_UNORDERED,
    ),
    # --- _buffer.py
    Row(name="batch", build=lambda up, n, *e: pipe(up(_twice(n), *e), ops.batch(2))),
    Row(
        name="batch",
        variant="timed",
        build=lambda up, n, *e: pipe(up(_twice(n), *e), ops.batch(2, seconds=5)),
        synchronous=2,
        declares=_ERRORS_OVERTAKE,
    ),
    Row(
        name="buffer",
        build=lambda up, n, *e: pipe(up(n, *e), ops.buffer(4)),
        synchronous=4,
        declares=_ERRORS_OVERTAKE,
    ),
    Row(
        name="drop",
        build=lambda up, n: pipe(penstock.interval(1), ops.drop(), ops.take(n)),
        faulty=False,
        declares=_LOSSY,
    ),
    Row(
        name="latest",
        build=lambda up, n: pipe(penstock.interval(1), ops.latest(), ops.take(n)),
        faulty=False,
        declares=_LOSSY,
    ),
    # --- _timing.py
    Row(
        name="debounce",
        build=lambda up, n: pipe(
            penstock.generate(numbers_slowly, n, PACE), ops.debounce(PACE / 2)
        ),
        faulty=False,
        declares=_SLOW,
    ),
    Row(
        name="throttle",
        build=lambda up, n: pipe(
            penstock.generate(numbers_slowly, n, PACE), ops.throttle(PACE / 2)
        ),
        faulty=False,
        declares=_SLOW,
    ),
    Row(
        name="delay",
        build=lambda up, n, *e: pipe(up(n, *e), ops.delay(PACE)),
        declares={**_ERRORS_OVERTAKE, **_SLOW},
        faulty=False,
    ),
    Row(
        name="sample",
        build=lambda up, n: pipe(penstock.interval(0.3), ops.sample(1), ops.take(n)),
        faulty=False,
        declares=_LOSSY,
    ),
    Row(name="timeout", build=lambda up, n, *e: pipe(up(n, *e), ops.timeout(5))),
    # --- _resubscribe.py
    Row(
        name="repeat",
        build=lambda up, n: (
            pipe(up(n // 2), ops.repeat(2)) if n % 2 == 0 else pipe(up(n), ops.repeat(1))
        ),
        faulty=False,
        declares={"eager_completion": False},
    ),
    Row(name="repeat", variant="once", build=lambda up, n, *e: pipe(up(n, *e), ops.repeat(1))),
    Row(
        name="retry",
        build=lambda up, n: pipe(_failing_every_second_time(n), ops.retry(2, backoff=PACE)),
        faulty=False,
        declares={"settle_seconds": 1.0, "eager_completion": False},
    ),
    Row(
        name="retry",
        variant="without attempts",
        build=lambda up, n, *e: pipe(up(n, *e), ops.retry(0)),
    ),
    Row(
        name="retry",
        variant="async",
        build=lambda up, n: pipe(
            _failing_every_second_time(n), ops.retry(2, when=_async(lambda error: True))
        ),
        faulty=False,
        declares={"settle_seconds": 1.0, "eager_completion": False},
    ),
    Row(
        name="on_error_resume",
        variant="with a source",
        build=lambda up, n: _resumed_half_way(n, lambda rest: penstock.generate(numbers, rest)),
        faulty=False,
    ),
    *_plain_and_async(
        "on_error_resume",
        lambda f, up, n: _resumed_half_way(
            n, lambda rest: f(lambda error: penstock.from_iterable(range(rest)))
        ),
        faulty=False,
    ),
]


# ---------------------------------------------------------------------- from rows to verifications


class _Piped(PenstockPublisher):
    """A row and the source of its operator."""

    abstract = True
    row: Row

    def up(self, elements, error=None):
        raise AssertionError(f"{type(self).__name__} does not define up()")

    def create_publisher(self, elements):
        return self.bound(self.row.build(self.up, elements))


class _OverAGenerator(_Piped):
    abstract = True

    def up(self, elements, error=None):
        return (
            penstock.generate(numbers, elements)
            if error is None
            else penstock.generate(numbers_and_an_error, elements, error)
        )


class _OverAPublisher(_Piped):
    abstract = True
    eager_completion = True
    synchronous_bound = None

    def up(self, elements, error=None):
        return penstock.from_publisher(CountingPublisher(elements, error))


def _faulty(self, elements, error):
    return self.bound(self.row.build(self.up, elements, error))


def _verification(row, base, suffix):
    name = "".join(
        word.capitalize() for word in f"{row.name} {row.variant} {suffix}".replace("_", " ").split()
    )
    factory = {"create_faulty_publisher": _faulty} if row.faulty else {}
    doc = f"`{row.name}` {row.variant} {suffix}".strip()
    attributes = {"row": row, "verifies": row.name, "__doc__": doc, "__module__": __name__}
    if base is _OverAGenerator:
        attributes["synchronous_bound"] = row.synchronous
    return type(name, (base,), {**attributes, **factory, **row.declares})


class _Shared(PenstockPublisher):
    """`share`, whose source waits a second, so that every subscriber joins before the first
    element.
    """

    abstract = True
    verifies = "share"
    settle_seconds = 5.0
    errors_overtake = True
    slow: Any

    def create_publisher(self, elements):
        return self.shared(_after_a_second, elements, None)

    def create_faulty_publisher(self, elements, error):
        return self.shared(_after_a_second, elements, error)

    def shared(self, *source):
        operator = ops.share(
            self.env.nursery, slow=self.slow, on_violation=self.reported_violations.append
        )
        return self.bound(pipe(penstock.generate(*source), operator))


class SharedWaiting(_Shared):
    """`SlowPolicy.WAIT` loses nothing."""

    slow = penstock.SlowPolicy.WAIT


class SharedDroppingTheOldest(_Shared):
    """One subscriber alone misses no element, because only what it has requested arrives.
    Another one may.
    """

    slow = penstock.SlowPolicy.DROP_OLDEST
    multicast = False


async def _after_a_second(elements, error):
    await trio.sleep(1)
    for number in range(elements):
        yield number
    if error is not None:
        raise error


for _row in ROWS:
    _made = [_verification(_row, _OverAGenerator, "")]
    if _row.selective:
        _made.append(_verification(_row, _OverAPublisher, "over a publisher"))
    for _each in _made:
        globals()[_each.__name__] = _each
