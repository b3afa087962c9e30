"""The table of the operators' promises:
a row for each exported name, and one more for each variant with an async function.

`test_promises.py` measures every row and compares the docstring with it. To add an operator, add
its rows to `PROMISES`: a function that makes the operator, and the figures that differ from those
of a stage that passes on one element for each request.
"""

from collections.abc import Callable
from typing import Any, Final

import attrs

from penstock.api import UNBOUNDED, SignalKind
from penstock.streams import SlowPolicy, Topic, ops, single
from penstock.streams.ops import Operator
from tests.streams.ops.harness import MAX_ELEMENTS, OperatorHarness, Token

STEPS: Final = 24
"""How many requests `steady` covers."""


class NoTaps:
    """A recorder whose taps keep nothing."""

    each_signal = False

    def tap(self, name: str, /) -> "NoTaps":
        return self

    def record(
        self, kind: SignalKind, n: int, size: int, first: int, last: int, longest: int, /
    ) -> None:
        """Keep nothing."""


@attrs.frozen(kw_only=True)
class Promise:
    """What one operator promises, in figures that can be measured."""

    name: str
    make: Callable[[OperatorHarness], Operator[Any, Any]]
    variant: str = ""
    """Distinguishes rows with the same name. "async": the function is async and waits for
    `harness.wait_unblocked()`.
    """

    # --- demand
    idle: int = 0
    """Elements requested from the first source before any downstream request."""
    demand: Callable[[int], int] = lambda n: n
    """Elements requested from the first source after one ``request(n)``."""
    others: Callable[[int], int] | None = None
    """Elements requested from each further source after one ``request(n)``."""
    steady: int = STEPS
    """Elements requested from the first source after `STEPS` times ``request(1)``,
    each of them answered at once.
    """
    pause: float = 0.0
    """Seconds to wait after each of those answers, and before held elements must have gone on."""
    demand_words: str = "1 per downstream demand"
    """These words follow "Upstream demand:" in the docstring."""

    # --- buffer
    bound: int = 0
    """Maximum of held elements for the operator that `make` returns, as the docstring has it."""
    peak: int | None = None
    """Maximum of held elements that a measurement can reach, if that is less than `bound`."""
    buffer_words: str = "none"
    """These words follow "Buffer:" in the docstring. Each number in them divides `bound`."""

    # --- ends
    after_error: tuple[str, ...] = ("error",)
    """Signals to downstream after the first source has failed."""
    after_complete: tuple[str, ...] = ("complete",)
    """Signals to downstream after the first source has completed, with no element held."""
    after_all: tuple[str, ...] = ("complete",)
    """Signals to downstream after every source has completed, with no element held."""
    remembered: int = 0
    """How many of the held elements only serve a comparison or a later result,
    and are never passed on.
    """
    room: int = 4
    """Elements that each source may give to fill the operator without ending the stream."""
    passes_on: Callable[[int], int] = lambda waiting: waiting
    """Tokens passed on when every source has completed, as a function of the number that waits."""
    raising: Callable[[Callable[..., Any]], Operator[Any, Any]] | None = None
    """Makes the same operator with the given function, which will raise.
    None if the operator takes no function.
    """

    @property
    def max_held(self) -> int:
        return self.bound if self.peak is None else self.peak

    def __str__(self) -> str:
        return f"{self.name}-{self.variant}" if self.variant else self.name


def _even(token: Token) -> bool:
    return token.number % 2 == 0


def _below_nine(token: Token) -> bool:
    return token.number < 9


def _fiftieth(token: Token) -> bool:
    return token.number == 50


def _last_two_bits(token: Token) -> int:
    return token.number % 4


def _pair(token: Token) -> int:
    return token.number // 2


def _slow(harness: OperatorHarness, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return `function` as an async function that first waits until the harness unblocks it."""

    async def slow(*args: Any) -> Any:
        await harness.wait_unblocked()
        return function(*args)

    return slow


def _up_to_16(n: int) -> int:
    return min(n, 16)


def _plain_and_async(
    name: str,
    build: Callable[[Callable[..., Any]], Operator[Any, Any]],
    function: Callable[..., Any],
    **differs: Any,
) -> list[Promise]:
    """Return the two rows of an operator with a plain or async function."""
    return [
        Promise(name=name, make=lambda harness: build(function), raising=build, **differs),
        Promise(
            name=name,
            variant="async",
            make=lambda harness: build(_slow(harness, function)),
            raising=build,
            **{**differs, "demand": _up_to_16, "bound": 16 + differs.get("bound", 0), "peak": 16},
            buffer_words="up to 16 with an async function",
        ),
    ]


def _last_token(total: Any, token: Token) -> Token:
    return token


def _reduce() -> list[Promise]:
    """Return the rows of `reduce`, which passes on nothing before its source has completed."""
    plain, with_async = _plain_and_async(
        "reduce",
        lambda function: ops.reduce(function, 0),
        _last_token,
        bound=1,
        remembered=1,
        after_complete=(),
        after_all=(),
    )
    return [
        attrs.evolve(
            plain,
            demand=lambda n: 256,
            steady=256 + 2 * 128,  # after each 128 of the 300 elements
            demand_words="256 with the first downstream demand, renewed by halves",
            buffer_words="none but the last result",
        ),
        attrs.evolve(
            with_async,
            demand=lambda n: 16,
            steady=MAX_ELEMENTS + 12,
            demand_words="16 at a time with an async function",
        ),
    ]


PROMISES: Final[list[Promise]] = [
    # --- _transform.py
    *_plain_and_async("map", ops.map, lambda token: token),
    *_plain_and_async("tap", ops.tap, lambda token: None),
    Promise(name="record", make=lambda harness: ops.record(NoTaps(), "x")),
    *_plain_and_async(
        "scan",
        lambda function: ops.scan(function, 0),
        lambda total, token: token,
        bound=1,
        remembered=1,
    ),
    Promise(
        name="pairwise",
        make=lambda harness: ops.pairwise(),
        demand=lambda n: n + 1,
        steady=STEPS + 1,
        demand_words="1 per downstream demand, and 1 more with the first",
        bound=1,
        buffer_words="none but the last element",
        remembered=1,
    ),
    *_reduce(),
    # --- _select.py
    *_plain_and_async("filter", ops.filter, _even, steady=2 * STEPS),
    *_plain_and_async("take_while", ops.take_while, _below_nine, steady=9),
    *_plain_and_async("first", ops.first, _fiftieth, steady=50),
    Promise(
        name="first",
        variant="without a predicate",
        make=lambda harness: ops.first(),
        demand=lambda n: 1,
        steady=1,
        room=0,
    ),
    *_plain_and_async(
        "distinct_until_changed",
        ops.distinct_until_changed,
        _pair,
        steady=2 * STEPS - 2,
    ),
    Promise(
        name="distinct_until_changed",
        variant="without a key",
        make=lambda harness: ops.distinct_until_changed(),
        bound=1,
        buffer_words="none but the last key",
        remembered=1,
    ),
    Promise(name="take", make=lambda harness: ops.take(5), demand=lambda n: min(n, 5), steady=5),
    Promise(
        name="skip",
        make=lambda harness: ops.skip(2),
        demand=lambda n: n + 2,
        steady=STEPS + 2,
        demand_words="1 per downstream demand, and `count` more with the first",
    ),
    # --- _buffer.py
    Promise(
        name="batch",
        make=lambda harness: ops.batch(5),
        demand=lambda n: 5 * n,
        steady=5 * STEPS,
        demand_words="`count` per downstream demand",
        bound=5,
        peak=4,  # the fifth element completes a list, which goes on at once
        buffer_words="`count` elements",
    ),
    Promise(
        name="batch",
        variant="timed",
        make=lambda harness: ops.batch(5, 60),
        demand=lambda n: 5 * min(n, 2),
        steady=5 * STEPS,
        demand_words="with `seconds` at most 2·`count` at a time",
        bound=2 * 5,
        peak=4,  # the scenarios take no time; more is held only after lists were passed on early
        buffer_words="with `seconds` 2·`count`",
    ),
    Promise(
        name="buffer",
        make=lambda harness: ops.buffer(4),
        idle=4,
        demand=lambda n: 4 + n,
        steady=4 + STEPS,
        demand_words="`size` at once, then 1 per downstream demand",
        bound=4,
        buffer_words="`size` elements",
    ),
    Promise(
        name="drop",
        make=lambda harness: ops.drop(),
        idle=UNBOUNDED,
        demand=lambda n: UNBOUNDED,
        steady=UNBOUNDED,
        demand_words="unbounded, at once",
    ),
    Promise(
        name="latest",
        make=lambda harness: ops.latest(),
        idle=UNBOUNDED,
        demand=lambda n: UNBOUNDED,
        steady=UNBOUNDED,
        demand_words="unbounded, at once",
        bound=1,
        buffer_words="1 element",
    ),
    # --- _timing.py
    Promise(
        name="debounce",
        make=lambda harness: ops.debounce(1),
        demand=lambda n: 1,
        steady=STEPS + 1,
        pause=2,
        demand_words="1 at a time, renewed while downstream demand is left",
        bound=1,
        buffer_words="1 element",
    ),
    Promise(
        name="throttle",
        make=lambda harness: ops.throttle(1),
        steady=2 * STEPS - 1,  # every second element arrives within the second
        pause=0.6,
        demand_words="1 per downstream demand, and 1 more for each element left out",
    ),
    Promise(
        name="delay",
        make=lambda harness: ops.delay(1, size=4),
        demand=lambda n: min(n, 4),
        pause=2,
        demand_words="1 per downstream demand, at most `size` (by default 256) ahead",
        bound=4,
        buffer_words="`size` elements",
    ),
    Promise(
        name="sample",
        make=lambda harness: ops.sample(1),
        demand=lambda n: 1,
        steady=STEPS + 1,
        pause=2,
        demand_words="1 at a time, renewed while downstream demand is left",
        bound=1,
        buffer_words="1 element",
    ),
    Promise(name="timeout", make=lambda harness: ops.timeout(60)),
    # --- _resubscribe.py
    Promise(name="repeat", make=lambda harness: ops.repeat(2), after_complete=(), after_all=()),
    Promise(name="retry", make=lambda harness: ops.retry(3), after_error=()),
    Promise(
        name="on_error_resume",
        make=lambda harness: ops.on_error_resume(harness.source()),
        after_error=(),
    ),
    # --- _combine.py
    Promise(
        name="merge",
        make=lambda harness: ops.merge(harness.source()),
        demand=_up_to_16,
        others=_up_to_16,
        steady=STEPS // 2,  # both sources answer each request, so it yields two elements
        demand_words="1 per downstream demand from each source, at most 16 ahead",
        bound=2 * 16,
        peak=2 * 16 - 1,  # the first element is in on_next when all others arrive
        buffer_words="up to 16 for each source",
        after_complete=(),
    ),
    Promise(
        name="zip",
        make=lambda harness: ops.zip(harness.source()),
        demand=_up_to_16,
        others=_up_to_16,
        demand_words="1 per downstream demand from each source, at most 16 ahead",
        bound=2 * 16,
        peak=2 * 16 - 2,  # the first tuple is in on_next when all others arrive
        buffer_words="up to 16 for each source",
    ),
    Promise(
        name="combine_latest",
        make=lambda harness: ops.combine_latest(harness.source()),
        demand=_up_to_16,
        others=_up_to_16,
        # Both sources answer each request, which yields two elements, except for the first.
        steady=STEPS // 2 + 1,
        demand_words=(
            "1 per downstream demand from each source, at most 16 ahead, and 1 more for each "
            "element that was replaced"
        ),
        bound=2 * 16 + 2,
        # The first tuple, of the latest elements, is in on_next when all others arrive.
        peak=2 * 16 - 2,
        buffer_words="up to 16 for each source, and the latest element of each",
        remembered=2,
        passes_on=lambda waiting: 2 * waiting,
    ),
    Promise(
        name="with_latest_from",
        make=lambda harness: ops.with_latest_from(single("other")),
        demand=_up_to_16,
        demand_words="1 per downstream demand from the source, at most 16 ahead",
        bound=16,
        peak=15,  # the first element is in on_next when all others arrive
        buffer_words="up to 16 for the source",
    ),
    Promise(
        name="with_latest_from",
        variant="before the other source",
        make=lambda harness: ops.with_latest_from(harness.source()),
        demand=lambda n: 0,
        others=lambda n: 16,
        demand_words="From each of `others`, 16 with the first downstream demand, renewed by halves",
        bound=16 + 1,
        peak=16,
        buffer_words="up to 16 for the source, and the latest element of each of `others`",
        remembered=1,
    ),
    Promise(name="take_until", make=lambda harness: ops.take_until(Topic[Any]())),
    # --- _share.py
    Promise(
        name="share",
        make=lambda harness: ops.share(harness.nursery),
        demand=_up_to_16,
        demand_words="1 per demand of the subscriber that has requested the most, at most 16 ahead",
        bound=16,
        peak=15,  # the first element is in on_next when all others arrive
        buffer_words="`buffer` elements for each subscriber",
    ),
    Promise(
        name="share",
        variant="dropping",
        make=lambda harness: ops.share(harness.nursery, slow=SlowPolicy.LATEST),
        demand=_up_to_16,
        demand_words="1 per demand of the subscriber that has requested the most, at most 16 ahead",
        bound=1,
        buffer_words="`buffer` elements for each subscriber",
    ),
    # --- _window.py
    Promise(
        name="window",
        make=lambda harness: ops.window(5),
        demand=lambda n: 5 * n,
        steady=5 * STEPS,
        demand_words="`count` per downstream demand",
        bound=5,
        peak=4,  # the fifth element completes the window, and only the recorder could keep it
        buffer_words="`count` elements in a window",
        passes_on=lambda waiting: 0,  # they are in a window that was passed on
    ),
    Promise(
        name="window",
        variant="timed",
        make=lambda harness: ops.window(5, 60),
        demand=lambda n: 5,
        steady=5 * STEPS,
        demand_words="with `seconds` at most 2·`count` at a time",
        bound=2 * 5,
        peak=4,
        buffer_words="with `seconds` 2·`count`",
        passes_on=lambda waiting: 0,
    ),
    # --- _group_by.py
    *(
        Promise(
            name="group_by",
            variant=variant,
            make=make,
            raising=ops.group_by,
            demand=lambda n: 16,
            steady=61,  # each group has 16 elements then, or 15
            demand_words="at most 16 (with `SlowPolicy.WAIT` at most `buffer`) at a time",
            bound=bound,
            peak=peak,
            buffer_words=words,
            room=4,
        )
        for variant, make, bound, peak, words in (
            (
                "",
                lambda harness: ops.group_by(_last_two_bits, max_groups=4),
                4 * 16,
                61,
                "so `max_groups` times `buffer` in all",
            ),
            (
                "async",
                lambda harness: ops.group_by(_slow(harness, _last_two_bits), max_groups=4),
                4 * 16 + 16,
                16,
                "up to 16 more with an async function",
            ),
        )
    ),
    # --- _flatten.py
    Promise(
        name="start_with",
        make=lambda harness: ops.start_with("first"),
        demand=lambda n: n - 1,
        steady=STEPS - 1,
        demand_words="1 per downstream demand, less the demand that `elements` use",
        buffer_words="none but `elements`",
        after_complete=(),
        after_all=(),
    ),
    Promise(name="concat", make=lambda harness: ops.concat(harness.source()), after_complete=()),
    *(
        Promise(
            name="flat_map",
            variant=variant,
            make=make,
            raising=lambda function: ops.flat_map(function, concurrency=4),
            demand=lambda n: 4,
            steady=4,  # the inner streams do not end
            demand_words=(
                "`concurrency` with the first downstream demand, then 1 for each inner stream "
                "that has ended"
            ),
            bound=4 * 16,
            peak=peak,
            buffer_words="up to 16 for each inner stream, so 16 times `concurrency` in all",
        )
        for variant, make, peak in (
            (
                "",
                lambda harness: ops.flat_map(lambda token: harness.source("inner"), concurrency=4),
                4 * 16 - 1,
            ),
            (
                "async",
                lambda harness: ops.flat_map(
                    _slow(harness, lambda token: harness.source("inner")), concurrency=4
                ),
                4,
            ),
        )
    ),
    *(
        Promise(
            name="switch_map",
            variant=variant,
            make=make,
            raising=ops.switch_map,
            demand=lambda n: 1,
            steady=steady,
            demand_words="1 at a time, renewed while downstream demand is left",
            bound=16,
            peak=peak,
            buffer_words="up to 16",
        )
        for variant, make, steady, peak in (
            (
                "",
                lambda harness: ops.switch_map(lambda token: harness.source("inner")),
                STEPS + 1,
                16,
            ),
            (
                "async",
                lambda harness: ops.switch_map(
                    _slow(harness, lambda token: harness.source("inner"))
                ),
                2 * STEPS,
                3,
            ),
        )
    ),
]
