"""What each Stream promises: that of trio, in a process and over a connection,
that of `penstock.aio`, that of `penstock.blocking`.
"""

import gc
import weakref
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.api import (
    UNBOUNDED,
    IllegalDemand,
    PluginError,
    ProtocolError,
    RuleViolation,
    StreamState,
    UsageError,
)
from penstock.reader._stream_buffer import FEW_WAITING, LOADED_BYTES, MOST_LOADED
from penstock.spi import Serializer
from penstock.testing import ManualPublisher
from tests._shells import END, WAITS
from tests.stream._kinds import (
    KINDS,
    StreamKind,
    arrive,
    of_each_stream,
    of_remote_streams,
    tell_position,
)


class Calls:
    """A subscription that records what is called."""

    def __init__(self) -> None:
        self.log: list[str] = []

    def request(self, n: int, /) -> None:
        self.log.append(f"request({n})")

    def cancel(self) -> None:
        self.log.append("cancel")


class Token:
    """An element that can be referred to weakly."""


class Unprintable(Exception):
    """An exception whose repr raises. Code that puts it into a message must survive that."""

    def __repr__(self) -> str:
        raise RuntimeError("no repr today")

    __str__ = __repr__


def end(stream: Any, publisher: ManualPublisher, how: str) -> None:
    if how == "complete":
        publisher.complete()
    elif how == "fail":
        publisher.fail(KeyError("failed"))
    else:
        stream.cancel()


# --- the demand


@pytest.mark.parametrize(
    "wrong",
    [-1, True, False, 1.0, "1", None, -(10**5000)],
    ids=lambda each: repr(each) if each != -(10**5000) else "huge",
)
@of_each_stream
async def test_a_demand_is_zero_or_more(kind: StreamKind, wrong: Any) -> None:
    """0 means manual demand, and a bool is a mistake. The message explains both."""
    with pytest.raises(UsageError) as caught:
        kind.open(ManualPublisher(), demand=wrong)
    assert str(caught.value).startswith("demand=")
    assert str(caught.value).endswith(
        "; give how many elements may be under way at a time (renewed as you take them), "
        "or 0 to call request() yourself"
    )


@pytest.mark.parametrize("demand", [1, 2, 256, UNBOUNDED, UNBOUNDED + 1, 2**70])
@of_each_stream
async def test_automatic_demand_is_requested_at_once(kind: StreamKind, demand: int) -> None:
    """All of it, and at most 2^63-1 (rule 3.17)."""
    publisher = ManualPublisher()
    async with kind.open(publisher, demand=demand):
        assert publisher.subscription.requests == [min(demand, UNBOUNDED)]


@of_each_stream
async def test_manual_demand_is_requested_by_the_program(kind: StreamKind) -> None:
    """Nothing is requested at once, and nothing is renewed. A reader that has all of it waits."""
    publisher = ManualPublisher()
    async with kind.open(publisher, demand=0) as stream:
        assert await kind.next(stream) is WAITS
        stream.request(2)
        publisher.emit(1, 2)
        assert await kind.all(stream) == [1, 2]
        assert stream.statistics().starved
        stream.request(10)
        publisher.emit(3, 4)
        publisher.complete()
        assert await kind.all(stream) == [3, 4]
        assert publisher.subscription.requests == [2, 10]
        publisher.check()


@of_each_stream
async def test_illegal_manual_demand_raises_to_the_caller(kind: StreamKind) -> None:
    """The caller made the mistake, so the caller gets the error (rule 3.9)."""
    publisher = ManualPublisher()
    async with kind.open(publisher, demand=0) as stream:
        for wrong in (0, -1, True, 1.5, "1", None):
            with pytest.raises(IllegalDemand):
                stream.request(wrong)
        stream.request(2**70)
        assert publisher.subscription.requests == [UNBOUNDED]


@of_each_stream
async def test_a_request_on_automatic_demand_is_a_usage_error(kind: StreamKind) -> None:
    """The program and the stream together would request too much."""
    async with kind.open(ManualPublisher(), demand=16) as stream:
        with pytest.raises(UsageError) as caught:
            stream.request(3)
    assert str(caught.value) == (
        "request(3) on a stream with demand=16, which renews it by itself. "
        "Open it with demand=0 to ask for each element yourself"
    )


@pytest.mark.parametrize("how", ["complete", "fail", "cancel"])
@of_each_stream
async def test_a_request_after_the_end_does_nothing(kind: StreamKind, how: str) -> None:
    """Rule 3.6; illegal demand still raises."""
    publisher = ManualPublisher()
    async with kind.open(publisher, demand=0) as stream:
        end(stream, publisher, how)
        stream.request(1)
        with pytest.raises(IllegalDemand):
            stream.request(0)
        assert publisher.subscription.requests == []
        assert publisher.violations == []


@pytest.mark.parametrize("demand", [1, 2, 3, 8, 42])
@of_each_stream
async def test_a_reader_that_waits_has_requested_all_that_it_has_read(
    kind: StreamKind, demand: int
) -> None:
    """So a publisher that counts what was taken knows of the last element too, however long the
    next one is away.
    """
    publisher = ManualPublisher()
    async with kind.open(publisher, demand=demand) as stream:
        for number in range(10):
            publisher.emit(number)
            assert await kind.next(stream) == number
            assert await kind.next(stream) is WAITS
        assert publisher.subscription.requests == [demand, *[1] * 10]


@pytest.mark.parametrize(("demand", "renewals"), [(1, [1] * 10), (2, [1] * 10), (8, [4, 4, 2])])
@of_each_stream
async def test_over_a_network_a_reader_that_waits_renews_demand_in_parts(
    kind: StreamKind, demand: int, renewals: list[int]
) -> None:
    """A request is a frame there, which costs as much for one element as for a hundred. So it is
    made rarely, and before the rest is used up: in quarters, and in halves before the first
    elements have shown their size.
    """
    publisher = ManualPublisher()
    async with kind.open(publisher, demand=demand, window=1 << 30) as stream:
        for number in range(10):
            publisher.emit(number)
            assert await kind.next(stream) == number
            assert await kind.next(stream) is WAITS
        assert publisher.subscription.requests == [demand, *renewals]


@of_each_stream
async def test_a_reader_with_elements_at_hand_renews_demand_in_halves(kind: StreamKind) -> None:
    """And what is left of it, with a quarter or more, before it waits:
    else the publisher would have nothing to do meanwhile.
    """
    publisher = ManualPublisher()
    async with kind.open(publisher, demand=8) as stream:
        arrive(publisher, range(7))
        for number in range(7):
            assert await kind.next(stream) == number
            assert publisher.subscription.requests == ([8] if number < 4 else [8, 4])
        assert await kind.next(stream) is WAITS
        assert publisher.subscription.requests == [8, 4, 3]


@of_each_stream
async def test_a_batch_renews_demand_at_once(kind: StreamKind) -> None:
    """The publisher works while the reader does."""
    publisher = ManualPublisher()
    async with kind.open(publisher, demand=8) as stream:
        arrive(publisher, range(8))
        assert await kind.batch(stream) == [*range(8)]
        assert publisher.subscription.requests == [8, 8]


@pytest.mark.parametrize("read", [StreamKind.next, StreamKind.batch])
@of_each_stream
async def test_with_a_demand_of_one_an_element_is_requested_when_the_reader_asks(
    kind: StreamKind, read: Any
) -> None:
    """The publisher makes the next element only when the reader is done with the last one."""
    publisher = ManualPublisher()
    async with kind.open(publisher, demand=1) as stream:
        publisher.emit(7)
        assert await getattr(kind, read.__name__)(stream) in (7, [7])
        assert publisher.outstanding == 0
        assert await getattr(kind, read.__name__)(stream) is WAITS
        assert publisher.outstanding == 1


READS = st.sampled_from(["element", "batch"])
ARRIVALS = st.tuples(st.just("emit"), st.integers(min_value=1, max_value=60))


@pytest.mark.parametrize("kind", KINDS, ids=lambda each: each.name)
@given(
    demand=st.integers(min_value=1, max_value=40),
    script=st.lists(ARRIVALS | st.tuples(READS, st.just(1)), max_size=60),
)
def test_buffered_and_outstanding_never_exceed_the_demand(
    kind: StreamKind, demand: int, script: list[tuple[str, int]]
) -> None:
    """For any mix of arrivals and of reads by element and by batch, every element is read once,
    in order.
    """

    async def scenario(kind: StreamKind) -> None:
        publisher = ManualPublisher()
        async with kind.open(publisher, demand=demand) as stream:
            sent, got = 0, []

            def look() -> None:
                now = stream.statistics()
                assert now.buffered + now.outstanding <= demand
                assert now.requested == publisher.requested
                assert (now.received, now.taken, now.buffered) == (sent, len(got), sent - len(got))

            for act, count in script:
                if act == "emit":
                    burst = min(count, publisher.outstanding)
                    arrive(publisher, range(sent, sent + burst))
                    sent += burst
                elif stream.statistics().buffered:
                    got += (
                        [await kind.next(stream)] if act == "element" else await kind.batch(stream)
                    )
                look()
            assert got == list(range(len(got)))
            # It never gets stuck: a reader that has read all elements and reads on has demand left.
            while stream.statistics().buffered:
                got.append(await kind.next(stream))
                look()
            assert await kind.next(stream) is WAITS
            look()
            assert publisher.outstanding > 0
            publisher.check()

    kind.run(scenario)


@pytest.mark.parametrize("kind", KINDS, ids=lambda each: each.name)
@given(
    requests=st.lists(st.integers(min_value=1, max_value=20), max_size=10),
    reads=st.lists(READS, max_size=40),
)
def test_manual_demand_is_never_exceeded_and_never_renewed(
    kind: StreamKind, requests: list[int], reads: list[str]
) -> None:
    """Exactly the requested elements arrive;
    then the statistics show that the stream is starved.
    """

    async def scenario(kind: StreamKind) -> None:
        publisher = ManualPublisher()
        async with kind.open(publisher, demand=0) as stream:
            sent, got = 0, []
            for n in requests:
                stream.request(n)
                publisher.emit(*range(sent, sent + n))
                sent += n
                assert not stream.statistics().starved
            for read in reads:
                if stream.statistics().buffered:
                    got += (
                        [await kind.next(stream)] if read == "element" else await kind.batch(stream)
                    )
            assert publisher.subscription.requests == requests
            now = stream.statistics()
            assert now.starved == (len(got) == sum(requests))
            assert (got, now.buffered) == (list(range(len(got))), sent - len(got))

    kind.run(scenario)


FIRST = 8
"""Elements that are asked for while no size is known."""


@of_each_stream
async def test_large_elements_use_a_part_of_the_demand(kind: StreamKind) -> None:
    """A few are asked for first.
    Then the window bounds what is asked for and unread, by the size of the elements that came.
    """
    publisher = ManualPublisher()
    async with kind.open(publisher, demand=100, window=4000) as stream:
        assert publisher.requested == FIRST
        for _ in range(20):
            count = publisher.outstanding
            kind.window_of(stream).received += 1000 * count
            arrive(publisher, [bytes(1000)] * count)
            now = stream.statistics()
            assert now.buffered <= FIRST
            assert len(await kind.batch(stream)) == now.buffered
        assert publisher.outstanding <= 4
        assert stream.statistics().received_bytes == 1000 * stream.statistics().received


@of_each_stream
async def test_large_elements_after_small_ones_are_unread_until_they_are_taken(
    kind: StreamKind,
) -> None:
    """A thousand were asked for as small ones.
    The reader takes each large one at once, long before it may ask for more.
    """
    publisher = ManualPublisher()
    async with kind.open(publisher, demand=1000, window=2000) as stream:
        window = kind.window_of(stream)
        for size in [1] * 64 + [1000] * 100:
            window.received += size
            publisher.emit(bytes(size))
            assert await kind.batch(stream) == [bytes(size)]
            assert await kind.next(stream) is WAITS
            assert window.unread <= 3000
        assert publisher.requested < 1000 + 64


# --- reading


@of_each_stream
async def test_elements_come_in_order_and_the_loop_ends_with_the_stream(kind: StreamKind) -> None:
    """Completion ends the loop, and each later attempt to read."""
    publisher = ManualPublisher()
    async with kind.open(publisher) as stream:
        publisher.emit(1, 2, 3)
        publisher.complete()
        assert await kind.all(stream) == [1, 2, 3]
        for _ in range(2):
            assert await kind.next(stream) is END
            assert await kind.batch(stream) is END
    publisher.check()


@of_each_stream
async def test_a_failure_is_raised_after_the_elements_that_came_before_it(kind: StreamKind) -> None:
    """The same exception object is raised, once; after that the stream has just ended."""
    publisher = ManualPublisher()
    async with kind.open(publisher) as stream:
        error = KeyError("failed")
        publisher.emit(1, 2)
        publisher.fail(error)
        assert [await kind.next(stream), await kind.next(stream)] == [1, 2]
        with pytest.raises(KeyError) as caught:
            await kind.next(stream)
        assert caught.value is error
        assert await kind.next(stream) is END


@pytest.mark.parametrize("error", [StopAsyncIteration(), StopIteration(5)], ids=repr)
@of_each_stream
async def test_a_stop_iteration_as_failure_is_raised_as_runtime_error(
    kind: StreamKind, error: Exception
) -> None:
    """PEP 479: a stream that failed must not look complete."""
    publisher = ManualPublisher()
    async with kind.open(publisher) as stream:
        publisher.fail(error)
        with pytest.raises(RuntimeError) as caught:
            await kind.next(stream)
        assert str(caught.value) == f"the publisher failed with {type(error).__name__}"
        assert caught.value.__cause__ is error


@of_each_stream
async def test_a_waiting_reader_is_woken_by_each_signal(kind: StreamKind) -> None:
    """An element wakes it, elements that arrive together do, and so does each kind of end."""
    publisher = ManualPublisher()
    async with kind.open(publisher) as stream:
        assert await kind.next(stream, meanwhile=lambda: publisher.emit(7)) == 7
        assert await kind.next(stream, meanwhile=lambda: arrive(publisher, [8, 9])) == 8
        assert await kind.next(stream) == 9
        assert await kind.next(stream, meanwhile=publisher.complete) is END
    async with kind.open(publisher) as stream:
        assert await kind.next(stream, meanwhile=stream.cancel) is END
    async with kind.open(publisher) as stream:
        with pytest.raises(KeyError):
            await kind.next(stream, meanwhile=lambda: publisher.fail(KeyError("failed")))


@of_each_stream
async def test_a_reader_that_gives_up_loses_nothing(kind: StreamKind) -> None:
    """Whether it was cancelled, or waited too long:
    the next one gets the elements that have arrived meanwhile.
    """
    publisher = ManualPublisher()
    async with kind.open(publisher) as stream:
        for number in range(3):
            assert await kind.next(stream) is WAITS
            assert await kind.batch(stream) is WAITS
            publisher.emit(number)
            assert await kind.next(stream) == number


@of_each_stream
async def test_a_batch_holds_all_elements_that_have_arrived(kind: StreamKind) -> None:
    """It is never empty, and in order."""
    publisher = ManualPublisher()
    async with kind.open(publisher) as stream:
        publisher.emit(1, 2, 3)
        assert await kind.batch(stream) == [1, 2, 3]
        assert await kind.batch(stream, meanwhile=lambda: publisher.emit(4)) == [4]
        publisher.emit(5)
        publisher.complete()
        assert await kind.batch(stream) == [5]
        assert await kind.batch(stream) is END


@of_each_stream
async def test_a_batch_continues_where_reading_by_element_stopped(kind: StreamKind) -> None:
    """Nothing is lost between them, in either direction."""
    publisher = ManualPublisher()
    async with kind.open(publisher, demand=8) as stream:
        arrive(publisher, range(8))
        assert await kind.next(stream) == 0  # a slice of 4 is being read, and 3 of it are left
        assert await kind.batch(stream) == [1, 2, 3, 4, 5, 6, 7]
        publisher.emit(8)
        assert await kind.next(stream) == 8


@of_each_stream
async def test_a_failure_comes_after_the_last_batch(kind: StreamKind) -> None:
    """Elements that arrived before the end are read before the end is raised."""
    publisher = ManualPublisher()
    async with kind.open(publisher) as stream:
        publisher.emit(1, 2)
        publisher.fail(KeyError("failed"))
        assert await kind.batch(stream) == [1, 2]
        with pytest.raises(KeyError):
            await kind.batch(stream)


@of_each_stream
async def test_a_slow_reader_is_behind_by_no_more_than_the_demand(kind: StreamKind) -> None:
    """The publisher sends all that it may, and the reader takes one at a time."""
    publisher = ManualPublisher()
    async with kind.open(publisher, demand=16) as stream:
        sent = 0
        for number in range(100):
            burst = publisher.outstanding
            arrive(publisher, range(sent, sent + burst))
            sent += burst
            assert stream.statistics().buffered <= 16
            assert await kind.next(stream) == number
        assert sent <= 100 + 16


# --- the block


@of_each_stream
async def test_leaving_the_block_cancels_the_stream(kind: StreamKind) -> None:
    """After a break, and if the body raises. Elements that were not read are dropped."""
    publisher = ManualPublisher()
    async with kind.open(publisher) as stream:
        publisher.emit(1, 2)
        assert await kind.next(stream) == 1
    assert (publisher.subscription.cancels, stream.statistics().state) == (1, StreamState.CANCELLED)
    with pytest.raises(ZeroDivisionError):
        async with kind.open(publisher):
            raise ZeroDivisionError
    assert publisher.subscription.cancels == 1
    publisher.check()


@of_each_stream
async def test_leaving_the_block_of_a_stream_that_has_ended_calls_nothing(kind: StreamKind) -> None:
    """Rules 2.3, 2.4: neither inside the signal nor later."""
    for how in ("complete", "fail"):
        publisher = ManualPublisher()
        async with kind.open(publisher) as stream:
            arrive(publisher, range(8))
            end(stream, publisher, how)
            stream.cancel()
        publisher.check()
        assert publisher.subscription.requests == [256]


@of_each_stream
async def test_a_stream_is_opened_once(kind: StreamKind) -> None:
    """One object is one subscription."""
    block = kind.open(ManualPublisher())
    async with block:
        with pytest.raises(UsageError, match="opened before"):
            await block.__aenter__()


# --- cancelling


@of_each_stream
async def test_cancel_goes_up_once_and_drops_buffered_elements(kind: StreamKind) -> None:
    """Iteration ends at once, and later signals are dropped (rule 2.8)."""
    publisher = ManualPublisher()
    async with kind.open(publisher, demand=8) as stream:
        arrive(publisher, range(8))
        assert await kind.next(stream) == 0
        stream.cancel()
        stream.cancel()
        publisher.misbehave("on_next", 99)
        publisher.misbehave("on_next_many", [99])
        publisher.misbehave("on_complete")
        assert await kind.next(stream) is END
        assert await kind.batch(stream) is END
        assert publisher.subscription.cancels == 1
        now = stream.statistics()
        assert (now.state, now.received, now.taken, now.buffered, now.outstanding) == (
            StreamState.CANCELLED,
            8,
            1,
            0,
            0,
        )


@pytest.mark.parametrize("how", ["complete", "fail"])
@of_each_stream
async def test_cancel_after_the_end_drops_elements_and_keeps_the_state(
    kind: StreamKind, how: str
) -> None:
    """Rule 2.4: no call goes up.
    The state stays what it was, and a failure that was not read is dropped.
    """
    publisher = ManualPublisher()
    async with kind.open(publisher) as stream:
        publisher.emit(1)
        end(stream, publisher, how)
        stream.cancel()
        assert await kind.next(stream) is END
        assert publisher.subscription.cancels == 0
        assert stream.statistics().state is (
            StreamState.COMPLETED if how == "complete" else StreamState.FAILED
        )
        publisher.check()


# --- the subscriber


@of_each_stream
async def test_a_second_subscription_is_cancelled(kind: StreamKind) -> None:
    """Rule 2.5; the first one goes on."""
    publisher, second = ManualPublisher(), Calls()
    async with kind.open(publisher) as stream:
        publisher.misbehave("on_subscribe", second)
        publisher.emit(1)
        assert second.log == ["cancel"]
        assert await kind.next(stream) == 1


@pytest.mark.parametrize("how", ["complete", "fail", "cancel"])
@of_each_stream
async def test_a_subscription_after_the_end_is_cancelled(kind: StreamKind, how: str) -> None:
    """A stream is for one subscription."""
    publisher, second = ManualPublisher(), Calls()
    async with kind.open(publisher) as stream:
        end(stream, publisher, how)
        publisher.misbehave("on_subscribe", second)
        assert second.log == ["cancel"]


@of_each_stream
async def test_the_same_subscription_twice_fails_the_stream(kind: StreamKind) -> None:
    """Rule 2.12: cancelling the second cancels the first, and a reader must not wait forever."""
    publisher = ManualPublisher()
    async with kind.open(publisher) as stream:
        publisher.misbehave("on_subscribe", publisher.subscription)
        assert publisher.subscription.cancels == 1
        with pytest.raises(RuleViolation) as caught:
            await kind.next(stream)
        assert caught.value.rule == "2.12"


@pytest.mark.parametrize("signal", ["on_subscribe", "on_next", "on_error"])
@of_each_stream
async def test_none_is_a_type_error_for_the_publisher(kind: StreamKind, signal: str) -> None:
    """Rule 2.13; the stream does not change."""
    publisher = ManualPublisher()
    async with kind.open(publisher) as stream:
        with pytest.raises(TypeError, match=rf"^{signal}\(None\): .*\(rule 2\.13\)$"):
            publisher.subscription.signal(signal, None)
        assert stream.statistics().state is StreamState.OPEN


@pytest.mark.parametrize(("wrong", "text"), [("boom", "'boom'"), (KeyError, "<class 'KeyError'>")])
@of_each_stream
async def test_an_error_is_an_exception(kind: StreamKind, wrong: Any, text: str) -> None:
    """A text or an exception class is refused."""
    publisher = ManualPublisher()
    async with kind.open(publisher):
        with pytest.raises(TypeError) as caught:
            publisher.subscription.signal("on_error", wrong)
    assert str(caught.value) == f"on_error({text}): an exception is needed (rule 2.13)"


@of_each_stream
async def test_an_exception_that_cannot_be_printed_is_an_exception(kind: StreamKind) -> None:
    """No message is made of it, so its repr is not called."""
    publisher = ManualPublisher()
    async with kind.open(publisher) as stream:
        publisher.misbehave("on_error", Unprintable())
        assert stream.statistics().state is StreamState.FAILED


@pytest.mark.parametrize("how", ["complete", "fail", "cancel"])
@of_each_stream
async def test_signals_after_the_end_do_nothing(kind: StreamKind, how: str) -> None:
    """The first end counts (rule 2.8)."""
    publisher = ManualPublisher()
    async with kind.open(publisher) as stream:
        end(stream, publisher, how)
        before = repr(stream)
        publisher.misbehave("on_next", 1)
        publisher.misbehave("on_next_many", [1, 2])
        publisher.misbehave("on_error", ValueError("late"))
        publisher.misbehave("on_complete")
        assert repr(stream) == before


# --- statistics


@of_each_stream
async def test_statistics_at_each_step(kind: StreamKind) -> None:
    """Requested, received, taken, buffered and outstanding, from the first request to the end."""
    publisher = ManualPublisher()
    async with kind.open(publisher, demand=0) as stream:

        def figures() -> tuple[object, ...]:
            now = stream.statistics()
            return (
                now.state.value,
                now.requested,
                now.received,
                now.taken,
                now.buffered,
                now.outstanding,
                now.starved,
            )

        assert figures() == ("open", 0, 0, 0, 0, 0, True)
        stream.request(5)
        assert figures() == ("open", 5, 0, 0, 0, 5, False)
        publisher.emit(1, 2, 3)
        assert figures() == ("open", 5, 3, 0, 3, 2, False)
        await kind.next(stream)
        assert figures() == ("open", 5, 3, 1, 2, 2, False)
        publisher.emit(4, 5)
        assert figures() == ("open", 5, 5, 1, 4, 0, False)
        for _ in range(4):
            await kind.next(stream)
        assert figures() == ("open", 5, 5, 5, 0, 0, True)
        stream.request(3)
        publisher.emit(6, 7)
        await kind.next(stream)
        stream.cancel()
        assert figures() == ("cancelled", 8, 7, 6, 0, 0, False)
        assert stream.statistics().received_bytes is None


@pytest.mark.parametrize("how", ["complete", "fail"])
@of_each_stream
async def test_an_ended_stream_has_nothing_outstanding_and_is_not_starved(
    kind: StreamKind, how: str
) -> None:
    """Requested elements will not come any more."""
    publisher = ManualPublisher()
    async with kind.open(publisher, demand=0) as stream:
        stream.request(5)
        publisher.emit(1)
        end(stream, publisher, how)
        now = stream.statistics()
        assert (now.requested, now.received, now.buffered, now.outstanding, now.starved) == (
            5,
            1,
            1,
            0,
            False,
        )


@of_each_stream
async def test_automatic_demand_is_never_starved(kind: StreamKind) -> None:
    """The stream requests by itself."""
    async with kind.open(ManualPublisher(), demand=1) as stream:
        assert not stream.statistics().starved


@of_each_stream
async def test_the_repr_shows_state_and_counts(kind: StreamKind) -> None:
    """In one line, for a log."""
    publisher = ManualPublisher()
    async with kind.open(publisher, demand=0) as stream:
        assert repr(stream) == "<stream open: 0 taken, 0 buffered, 0 outstanding, starved>"
        stream.request(3)
        publisher.emit(1, 2)
        await kind.next(stream)
        assert repr(stream) == "<stream open: 1 taken, 1 buffered, 1 outstanding>"
        stream.cancel()
        assert repr(stream) == "<stream cancelled: 1 taken, 0 buffered, 0 outstanding>"


# --- positions


@of_each_stream
async def test_the_position_counts_what_was_taken(kind: StreamKind) -> None:
    """By element and by batch.
    Buffered elements do not count, and neither do those that a cancel dropped.
    """
    publisher = ManualPublisher()
    async with kind.open(publisher) as stream:
        assert stream.position_if_known is None
        publisher.misbehave("on_fact", "something else")
        with pytest.raises(UsageError, match="position_if_known"):
            assert stream.position
        tell_position(publisher, 500)
        assert stream.position_if_known == 500
        publisher.emit(1, 2, 3)
        assert stream.position == 500
        assert await kind.next(stream) == 1
        assert stream.position == 501
        publisher.emit(4)
        while stream.position < 504:
            await kind.batch(stream)
        publisher.emit(5)
        stream.cancel()
        assert stream.position == 504


# --- references


@pytest.mark.parametrize("how", ["complete", "cancel"])
@of_each_stream
async def test_an_ended_stream_keeps_no_element_and_no_publisher(
    kind: StreamKind, how: str
) -> None:
    """A program may keep it for its statistics."""
    publisher = ManualPublisher()
    block = kind.open(publisher, demand=8)
    async with block as stream:
        tokens = [Token() for _ in range(8)]
        refs = [weakref.ref(token) for token in tokens]
        publisher.subscription.signal("on_next_many", tokens)
        if how == "complete":
            publisher.complete()
            del tokens
            assert len(await kind.all(stream)) == 8
        else:
            del tokens
            assert await kind.next(stream)
            stream.cancel()
        subscription = weakref.ref(publisher.subscription)
        publisher.subscriptions.clear()
        gc.collect()
        assert [ref() for ref in refs] == [None] * 8
        assert subscription() is None


@of_each_stream
async def test_a_failure_that_was_raised_is_not_kept(kind: StreamKind) -> None:
    """Its traceback would keep whole frames alive."""

    class Failure(Exception):
        pass

    async def fail(stream: Any, publisher: ManualPublisher) -> "weakref.ref[Failure]":
        error = Failure()
        publisher.fail(error)
        with pytest.raises(Failure):
            await kind.next(stream)
        return weakref.ref(error)

    publisher = ManualPublisher()
    async with kind.open(publisher) as stream:
        failure = await fail(stream, publisher)
        gc.collect()
        assert failure() is None


# --- elements that a serializer loads


class Spy(Serializer):
    """Loads texts, and notes how many at a time. It refuses "bad", and returns None for "none"."""

    name = "spy"

    def __init__(self) -> None:
        self.loaded: list[int] = []

    def dumps(self, element: object, /) -> bytes:
        return str(element).encode()

    def loads(self, data: bytes, /) -> object:
        if data == b"bad":
            raise ProtocolError("this is bad")
        return None if data == b"none" else data.decode()

    def loads_many(self, elements: Sequence[bytes], /) -> list[Any]:
        self.loaded.append(len(elements))
        return super().loads_many(elements)


@of_each_stream
async def test_elements_are_loaded_when_the_reader_takes_them(kind: StreamKind) -> None:
    """As bytes they cost the collector nothing. A batch has at most MOST_LOADED elements."""
    publisher, spy = ManualPublisher(), Spy()
    async with kind.open(publisher, demand=1024, loader=spy) as stream:
        arrive(publisher, [b"x"] * 600)
        publisher.emit(b"y")
        assert (spy.loaded, stream.statistics().buffered, stream.held()) == ([], 601, 601)
        publisher.complete()
        sizes = [len(await kind.batch(stream)) for _ in range(3)]
        assert sizes == spy.loaded == [MOST_LOADED, MOST_LOADED, 601 - 2 * MOST_LOADED]
        assert await kind.batch(stream) is END
        assert stream.statistics().taken == 601


@of_each_stream
async def test_elements_are_loaded_for_a_reader_by_element(kind: StreamKind) -> None:
    """In order, and at most half of the demand at a time."""
    publisher, spy = ManualPublisher(), Spy()
    async with kind.open(publisher, demand=100, loader=spy) as stream:
        arrive(publisher, [str(number).encode() for number in range(100)])
        publisher.complete()
        assert await kind.all(stream) == [str(number) for number in range(100)]
        assert spy.loaded == [50, 50]


@of_each_stream
async def test_few_long_elements_are_loaded_at_a_time(kind: StreamKind) -> None:
    """The bytes bound how long other tasks wait. The first element that exceeds them is loaded."""
    publisher = ManualPublisher()
    async with kind.open(publisher, loader=Spy()) as stream:
        long, longer = b"x" * (LOADED_BYTES // 4), b"y" * (2 * LOADED_BYTES)
        arrive(publisher, [long] * 11 + [longer] * 2)
        publisher.complete()
        assert [len(await kind.batch(stream)) for _ in range(4)] == [5, 5, 2, 1]


@pytest.mark.parametrize(("bad", "failure"), [(b"bad", ProtocolError), (b"none", PluginError)])
@pytest.mark.parametrize("completes", [False, True])
@of_each_stream
async def test_an_element_that_is_not_loaded_ends_the_stream(
    kind: StreamKind, *, bad: bytes, failure: type[Exception], completes: bool
) -> None:
    """After those before it, with its position and length.
    The peer is told, unless it has ended the stream.
    """
    publisher = ManualPublisher()
    async with kind.open(publisher, demand=1024, loader=Spy()) as stream:
        arrive(publisher, [b"a"] * 300 + [bad] + [b"b"] * 300)
        if completes:
            publisher.complete()
        got: list[str] = await kind.batch(stream)
        got += await kind.batch(stream)
        with pytest.raises(failure, match=rf"element 300 \({len(bad)} bytes\)"):
            await kind.batch(stream)
        publisher.misbehave("on_next", b"c")
        now = stream.statistics()
        assert (got, now.taken, now.buffered) == (["a"] * 300, 300, 0)
        assert now.state is StreamState.FAILED
        assert publisher.subscription.cancels == (not completes)
        assert await kind.next(stream) is END


@of_each_stream
async def test_elements_of_the_slice_are_read_before_the_first_of_a_list_fails(
    kind: StreamKind,
) -> None:
    """A reader that goes over from elements to batches loses none."""
    publisher = ManualPublisher()
    async with kind.open(publisher, demand=8, loader=Spy()) as stream:
        arrive(publisher, [b"1", b"2", b"3", b"4", b"bad"])
        assert await kind.next(stream) == "1"
        assert await kind.batch(stream) == ["2", "3", "4"]
        with pytest.raises(ProtocolError, match="element 4"):
            await kind.batch(stream)


@of_each_stream
async def test_a_cancel_while_elements_are_loaded_drops_them(kind: StreamKind) -> None:
    """Code of the program may run in `loads`."""

    class Cancels(Spy):
        def loads(self, data: bytes, /) -> object:
            stream.cancel()
            return 1

    publisher = ManualPublisher()
    async with kind.open(publisher, loader=Cancels()) as stream:
        arrive(publisher, [b"1", b"2"])
        assert await kind.next(stream) is END
        now = stream.statistics()
        assert (publisher.subscription.cancels, now.taken, now.buffered) == (1, 0, 0)


@of_each_stream
async def test_a_reader_that_is_far_behind_gets_all_elements_in_order(kind: StreamKind) -> None:
    """More than `FEW_WAITING` wait in a deque: the rest is not copied each time that some of them
    are loaded.
    """
    publisher = ManualPublisher()
    async with kind.open(publisher, demand=10 * FEW_WAITING, loader=Spy()) as stream:
        expected = [str(number) for number in range(3 * FEW_WAITING)]
        arrive(publisher, [each.encode() for each in expected])
        got = [*await kind.batch(stream)]
        waiting = stream._arrived
        got += await kind.batch(stream)
        assert stream._arrived is waiting
        arrive(publisher, [b"more"])
        publisher.complete()
        now = stream.statistics()
        assert (now.taken, now.buffered) == (len(got), len(expected) + 1 - len(got))
        while (batch := await kind.batch(stream)) is not END:
            got += batch
        assert got == [*expected, "more"]


# --- over a connection: memory and types


@of_remote_streams
async def test_packed_elements_come_as_elements_or_as_memory(kind: StreamKind) -> None:
    """The counts are of elements in both cases."""
    for read, expected in (
        (kind.batch, [b"aa", b"bb", b"cc", b"dd"]),
        (kind.buffer, b"aabbccdd"),
    ):
        publisher = ManualPublisher()
        async with kind.open(publisher, demand=4) as stream:
            publisher.subscription.signal("on_element_size", 2)
            assert stream.element_size == 2
            assert await read(stream) is WAITS
            publisher.subscription.signal("on_next_packed", 2, b"aabb")
            publisher.subscription.signal("on_next_packed", 2, b"ccdd")
            assert (stream.statistics().buffered, stream.statistics().outstanding) == (4, 0)
            assert await read(stream) == expected
            assert stream.statistics().taken == 4
            assert publisher.subscription.requests == [4, 4]


@of_remote_streams
async def test_memory_of_a_stream_without_a_size_is_refused(kind: StreamKind) -> None:
    """The error names the two other ways to read."""
    publisher = ManualPublisher()
    async with kind.open(publisher) as stream:
        publisher.emit(b"a")
        with pytest.raises(
            UsageError, match=r"no fixed size: read it by element, or by batches\(\)"
        ):
            await kind.buffer(stream)


@of_remote_streams
async def test_packed_elements_are_loaded_with_the_serializer(kind: StreamKind) -> None:
    """Their size is that of the bytes, so there is no memory of them to read."""
    publisher = ManualPublisher()
    async with kind.open(publisher, loader=Spy()) as stream:
        publisher.subscription.signal("on_element_size", 2)
        publisher.subscription.signal("on_next_packed", 2, b"aabb")
        assert stream.element_size == 0
        assert await kind.batch(stream) == ["aa", "bb"]
        assert await kind.buffer(stream) is WAITS
        publisher.subscription.signal("on_next_packed", 2, b"aabb")
        with pytest.raises(UsageError, match="no fixed size"):
            await kind.buffer(stream)
