"""`group_by`: which group an element goes to, both bounds
and the answer to elements beyond them, and the ends.
"""

from collections import Counter
from typing import Any

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from penstock.api import LimitExceeded, PublisherStopped, SlowSubscriber, UsageError
from penstock.streams import SlowPolicy, collect, ops, subscribe
from tests.streams.ops._inner_streams import NestedRecorder, run_nested
from tests.streams.ops.harness import OperatorHarness, ScriptedError, Token, clear_tracebacks

KINDS = {"complete": "complete", "fail": "error"}


def _parity(token: Token) -> int:
    return token.number % 2


def _number(token: Token) -> int:
    return token.number


def _keys(recorder: NestedRecorder) -> list[Any]:
    return [stream.key for stream in recorder.streams]  # type: ignore[attr-defined]  # all of them are groups


# ------------------------------------------------------------------------------------------- groups


async def test_each_key_has_a_group_with_its_elements() -> None:
    """A group is passed on with its first element, and has the key."""
    async with OperatorHarness() as harness:
        recorder = run_nested(harness, ops.group_by(_parity), demand=10)
        harness.upstreams[0].emit(5)
        assert _keys(recorder) == [1, 0]
        assert [inner.elements for inner in recorder.inner] == [[1, 3, 5], [2, 4]]
        assert repr(recorder.streams[0]) == "<group 1>"


async def _parity_later(number: int) -> str:
    await trio.lowlevel.checkpoint()
    return "odd" if number % 2 else "even"


async def test_an_async_function_gives_the_key() -> None:
    """The order of the elements stays."""
    seen: list[tuple[str, list[int]]] = []

    async def read(group: ops.Group[str, int]) -> list[int]:
        seen.append((group.key, await collect(group)))
        return []

    await collect(ops.pipe(range(6), ops.group_by(_parity_later), ops.flat_map(read)))
    assert sorted(seen) == [("even", [0, 2, 4]), ("odd", [1, 3, 5])]


async def test_a_key_may_be_none() -> None:
    """A key is not an element, so None is legal."""
    async with OperatorHarness() as harness:
        recorder = run_nested(harness, ops.group_by(lambda token: None), demand=1)
        harness.upstreams[0].emit(2)
        assert _keys(recorder) == [None]


@pytest.mark.parametrize(
    ("key", "hashless", "instead"),
    [
        (["a"], "list", "tuple(key) in place of the list key"),
        ({"a"}, "set", "frozenset(key) in place of the set key"),
        ({"a": 1}, "dict", "tuple(sorted(key.items())) in place of the dict key"),
        (bytearray(b"a"), "bytearray", "a text, a number, or a tuple of these"),
        ((["a"],), "list", "a text, a number, or a tuple of these"),
    ],
    ids=lambda value: type(value).__name__,
)
async def test_a_key_that_cannot_be_hashed_fails_the_stream(
    key: Any, hashless: str, instead: str
) -> None:
    """The error names the function, the value that it returned, and the values
    that it may return.
    """

    def parts(token: Any) -> Any:
        return key

    async with OperatorHarness() as harness:
        recorder = run_nested(harness, ops.group_by(parts), demand=1)
        harness.upstreams[0].emit()
        assert isinstance(recorder.error, UsageError)
        kind = type(key).__name__
        assert str(recorder.error) == (
            f"group_by({parts.__qualname__}): the function returned {key!r} of type {kind}, which "
            f"cannot be a key, because it has no hash (unhashable type: '{hashless}'). Let the "
            f"function return {instead}"
        )
        assert harness.upstreams[0].cancelled
        clear_tracebacks(recorder.error)


async def test_a_new_group_waits_for_demand() -> None:
    """Its elements wait in it."""
    async with OperatorHarness() as harness:
        recorder = run_nested(harness, ops.group_by(_parity), demand=1)
        harness.upstreams[0].emit(4)
        assert _keys(recorder) == [1]
        recorder.request(1)
        assert [inner.elements for inner in recorder.inner] == [[1, 3], [2, 4]]


async def test_a_cancelled_group_opens_again_with_the_next_element_of_its_key() -> None:
    """The elements that waited in it are dropped."""
    async with OperatorHarness() as harness:
        recorder = run_nested(harness, ops.group_by(_parity), demand=10)
        main = harness.upstreams[0]
        main.emit(2)
        recorder.inner[0].cancel()
        main.emit(1)
        assert _keys(recorder) == [1, 0, 1]
        assert recorder.inner[2].elements == [3]


# ------------------------------------------------------------------------------------------- demand


async def test_elements_are_requested_while_a_group_or_its_elements_are() -> None:
    """Without either, nothing more is requested."""
    async with OperatorHarness() as harness:
        recorder = run_nested(harness, ops.group_by(_parity), demand=1, inner_demand=0)
        main = harness.upstreams[0]
        assert main.requests == [16]
        main.emit(9)
        assert main.requests == [16]
        recorder.inner[0].request(3)
        assert recorder.inner[0].elements == [1, 3, 5]
        assert main.requests == [16]
        recorder.inner[0].request(10)
        # The other group has 4 of its 16 places taken, and 7 elements are under way.
        assert main.requests == [16, 5]


async def test_with_wait_a_full_group_stops_the_others() -> None:
    """A group that is not read holds all up when its buffer is full. When it is read or
    cancelled, the others go on.
    """
    for resume in ("request", "cancel"):
        async with OperatorHarness() as harness:
            recorder = run_nested(
                harness, ops.group_by(_parity, buffer=4), demand=10, inner_demand=0
            )
            main = harness.upstreams[0]
            main.emit()
            odd = recorder.inner[0]
            main.emit()
            even = recorder.inner[1]
            odd.request(100)
            main.answer()
            assert odd.received == 4
            assert main.outstanding == 0
            assert harness.held == 4
            if resume == "request":
                even.request(2)
            else:
                even.cancel()
            assert main.outstanding > 0
            main.answer(4)
            assert odd.received > 4


@pytest.mark.parametrize(
    ("slow", "kept"),
    [
        (SlowPolicy.DROP_OLDEST, [94, 96, 98, 100]),
        (SlowPolicy.DROP_NEWEST, [2, 4, 6, 8]),
        (SlowPolicy.LATEST, [100]),
    ],
)
async def test_with_the_dropping_policies_a_slow_group_does_not_stop_the_others(
    slow: SlowPolicy, kept: list[int]
) -> None:
    """It keeps the elements that the policy says."""
    async with OperatorHarness() as harness:
        options: Any = {} if slow is SlowPolicy.LATEST else {"buffer": 4}
        recorder = run_nested(
            harness, ops.group_by(_parity, slow=slow, **options), demand=10, inner_demand=0
        )
        harness.upstreams[0].emit(2)
        odd, even = recorder.inner
        odd.request(100)
        harness.upstreams[0].answer(98)
        assert odd.received == 50
        even.request(100)
        assert even.elements == kept


async def test_with_fail_a_slow_group_fails_alone() -> None:
    """Its key opens a new group with the next element."""
    async with OperatorHarness() as harness:
        recorder = run_nested(
            harness, ops.group_by(_parity, slow=SlowPolicy.FAIL, buffer=4), demand=2, inner_demand=0
        )
        harness.upstreams[0].emit(2)
        odd, even = recorder.inner
        odd.request(100)
        harness.upstreams[0].answer(10)
        assert isinstance(even.error, SlowSubscriber)
        assert odd.received == 6
        assert recorder.kinds == ["next", "next"]
        recorder.request(1)
        assert _keys(recorder) == [1, 0, 0]


async def test_a_group_without_a_subscriber_that_overflows_fails_when_it_gets_one() -> None:
    """With SlowPolicy.FAIL the error waits for the subscriber, and the elements are dropped."""
    async with OperatorHarness() as harness:
        operator: Any = ops.group_by(_parity, slow=SlowPolicy.FAIL, buffer=4)
        recorder = run_nested(harness, operator, demand=3, inner_demand=0, subscribes=False)
        harness.upstreams[0].answer(14)
        assert harness.held == 0
        assert isinstance(recorder.subscribe(recorder.streams[0]).error, SlowSubscriber)


async def test_requests_of_a_group_inside_on_next_do_not_recurse() -> None:
    """A source that answers inside `request` serves them after the element."""
    async with OperatorHarness() as harness:
        harness.answers_in_request, harness.source_length = True, 100
        recorder = run_nested(harness, ops.group_by(lambda token: 0), demand=0, inner_demand=0)

        def request_more() -> None:
            inner = recorder.inner[0]
            inner.on_element = lambda: inner.request(1)
            inner.request(1)

        recorder.on_element = request_more
        recorder.request(1)
        assert recorder.inner[0].elements == list(range(1, 101))
        assert recorder.inner[0].kinds[-1] == recorder.kinds[-1] == "complete"
        assert recorder.inner[0].deepest == 1


# --------------------------------------------------------------------------------- number of groups


async def test_a_key_beyond_the_bound_fails_all_streams() -> None:
    """The error has the bound, and says what to do. Upstream is cancelled."""
    async with OperatorHarness() as harness:
        recorder = run_nested(harness, ops.group_by(_number, max_groups=2), demand=10)
        harness.upstreams[0].emit(3)
        assert isinstance(recorder.error, LimitExceeded)
        assert (
            "group_by() has 2 open groups, and the key 3 needs another one. Choose a larger "
            "max_groups"
        ) in str(recorder.error)
        assert (recorder.error.limit, recorder.error.value) == ("max_groups", 2)
        assert [inner.error for inner in recorder.inner] == [recorder.error] * 2
        assert harness.upstreams[0].cancelled
        clear_tracebacks(recorder.error)


async def test_a_cancelled_group_makes_room() -> None:
    """Only open groups count."""
    async with OperatorHarness() as harness:
        recorder = run_nested(harness, ops.group_by(_number, max_groups=2), demand=10)
        harness.upstreams[0].emit(2)
        recorder.inner[0].cancel()
        harness.upstreams[0].emit()
        assert _keys(recorder) == [1, 2, 3]
        assert recorder.error is None


async def test_evict_completes_the_group_that_was_silent_longest() -> None:
    """Its key opens a new group later."""
    async with OperatorHarness() as harness:
        keys = iter("abacb")
        recorder = run_nested(
            harness, ops.group_by(lambda token: next(keys), max_groups=2, evict=True), demand=10
        )
        harness.upstreams[0].emit(5)
        assert _keys(recorder) == ["a", "b", "c", "b"]
        assert [inner.kinds[-1] for inner in recorder.inner] == [
            "complete",
            "complete",
            "next",
            "next",
        ]
        assert [inner.elements for inner in recorder.inner] == [[1, 3], [2], [4], [5]]


async def test_evicted_groups_that_were_not_requested_are_bounded() -> None:
    """At most `max_groups` groups wait for demand.
    They are passed on later, with their elements and their completion.
    """
    async with OperatorHarness() as harness:
        recorder = run_nested(harness, ops.group_by(_number, max_groups=3, evict=True), demand=1)
        main = harness.upstreams[0]
        main.answer()
        assert main.sent <= 1 + 3 + 3
        sent = main.sent
        recorder.request(100)
        assert _keys(recorder) == list(range(1, sent + 1))
        assert [inner.elements for inner in recorder.inner] == [
            [number] for number in range(1, sent + 1)
        ]


# --------------------------------------------------------------------------------------------- ends


@pytest.mark.parametrize("end", ["complete", "fail"])
async def test_an_end_reaches_every_group_and_the_outer_stream(end: str) -> None:
    """Completion waits for the elements of a group, and an error does not."""
    async with OperatorHarness() as harness:
        recorder = run_nested(harness, ops.group_by(_parity), demand=10, inner_demand=1)
        harness.upstreams[0].emit(3)
        getattr(harness.upstreams[0], end)()
        odd, even = recorder.inner
        assert recorder.kinds[-1] == even.kinds[-1] == KINDS[end]
        assert odd.kinds[-1] == ("next" if end == "complete" else "error")
        odd.request(1)
        assert odd.kinds[-1] == KINDS[end]
        assert recorder.error is even.error


async def test_groups_that_were_not_requested_come_before_the_completion() -> None:
    """With their elements and their completion."""
    async with OperatorHarness() as harness:
        recorder = run_nested(harness, ops.group_by(_parity), demand=1)
        harness.upstreams[0].emit(2)
        harness.upstreams[0].complete()
        assert recorder.kinds == ["next"]
        recorder.request(1)
        assert recorder.kinds == ["next", "next", "complete"]
        assert recorder.inner[1].signals == [("next", 2), ("complete",)]


@pytest.mark.parametrize("how", ["cancel", "complete", "fail"])
async def test_after_a_cancel_the_groups_with_a_subscriber_go_on(how: str) -> None:
    """Groups without one are dropped, no new group opens, and upstream ends with the last group."""
    async with OperatorHarness() as harness:
        recorder = run_nested(harness, ops.group_by(lambda token: token.number % 3), demand=10)
        main = harness.upstreams[0]
        main.emit()
        recorder.subscribes = False
        main.emit()
        recorder.cancel()
        assert not main.over
        main.emit(8)
        one = recorder.inner[0]
        assert one.elements == [1, 4, 7, 10]
        assert len(recorder.streams) == 2
        assert isinstance(recorder.subscribe(recorder.streams[1]).error, PublisherStopped)
        assert main.outstanding >= 8, "a group with demand still leads to requests"
        getattr(one if how == "cancel" else main, how)()
        assert main.over
        assert one.kinds[-1] == KINDS.get(how, "next")
        assert recorder.kinds == ["next", "next"]


async def test_a_cancel_without_groups_cancels_upstream() -> None:
    """Groups that wait for demand are dropped."""
    async with OperatorHarness() as harness:
        recorder = run_nested(harness, ops.group_by(_parity), demand=1, subscribes=False)
        harness.upstreams[0].emit(4)
        recorder.cancel()
        assert harness.upstreams[0].cancelled
        assert harness.held == 0


async def test_an_error_of_the_function_reaches_the_groups() -> None:
    """All streams end with it."""
    error = ScriptedError()

    def fails_later(token: Token) -> int:
        if token.number == 2:
            raise error
        return 0

    async with OperatorHarness() as harness:
        recorder = run_nested(harness, ops.group_by(fails_later), demand=1)
        harness.upstreams[0].emit(2)
        assert recorder.error is recorder.inner[0].error is error
        clear_tracebacks(error)


# -------------------------------------------------------------------------------------------- whole


async def test_groups_can_be_read_by_tasks_of_their_own() -> None:
    """The usual way without operators:
    a task for each group, in a nursery inside the block of the outer stream.
    """
    counts: Counter[str] = Counter()

    async def read(group: ops.Group[str, str]) -> None:
        async with subscribe(group) as stream:
            async for _ in stream:
                counts[group.key] += 1

    words = ["the", "cat", "and", "the", "hat", "and", "the", "mat"]
    async with (
        subscribe(ops.pipe(words, ops.group_by(str))) as groups,
        trio.open_nursery() as nursery,
    ):
        async for group in groups:
            nursery.start_soon(read, group)
    assert counts == {"the": 3, "cat": 1, "and": 2, "hat": 1, "mat": 1}


@given(
    st.lists(st.integers(0, 5), max_size=60),
    st.integers(1, 8),
    st.sampled_from([1, 2, 256]),
    st.sampled_from([1, 2, 256]),
    st.booleans(),
)
def test_the_groups_have_every_element_once(
    numbers: list[int], buffer: int, demand: int, inner_demand: int, is_async: bool
) -> None:
    """For any elements, buffer and demand: the groups in order of their first elements, each
    with its elements in order.
    """

    async def main() -> None:
        found: dict[int, list[int]] = {}

        async def read(group: Any) -> None:
            found[group.key] = []
            async with subscribe(group, demand=inner_demand) as stream:
                async for place in stream:
                    found[group.key].append(place)

        async def later(place: int) -> int:
            await trio.lowlevel.checkpoint()
            return numbers[place]

        grouped: Any = ops.group_by(
            later if is_async else numbers.__getitem__, max_groups=6, buffer=buffer
        )
        async with (
            subscribe(ops.pipe(range(len(numbers)), grouped), demand=demand) as groups,
            trio.open_nursery() as nursery,
        ):
            async for group in groups:
                nursery.start_soon(read, group)
        assert found == {
            key: [place for place, other in enumerate(numbers) if other == key]
            for key in dict.fromkeys(numbers)
        }

    trio.run(main)


# ---------------------------------------------------------------------------------------- arguments


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {"max_groups": 0},
            r"group_by\(max_groups=0\): give how many groups may be open, an integer of at least 1",
        ),
        ({"max_groups": True}, r"group_by\(max_groups=True\)"),
        ({"buffer": 0}, r"group_by\(buffer=0\): give how many elements may wait"),
        ({"slow": "wait"}, r"group_by\(slow='wait'\): choose one of SlowPolicy.WAIT"),
    ],
)
def test_wrong_arguments_are_refused(options: Any, words: str) -> None:
    """The error names the operator and the argument."""
    with pytest.raises(UsageError, match=words):
        ops.group_by(str, **options)


def test_the_key_is_a_function() -> None:
    """The error names the operator."""
    with pytest.raises(
        UsageError, match=r"group_by\(\) was given 5; it takes a function, plain or async"
    ):
        ops.group_by(5)  # type: ignore[call-overload]  # the mistake that is tested
