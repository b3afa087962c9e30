"""A handler's value as a stream of one: called once, answered once, and let go in the task's own way."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trio
import trio.testing

from penstock.api import PublisherStopped, UsageError
from penstock.core import Scope, subscribe
from penstock.runtime._one_value import OneValue
from penstock.testing import ManualSubscriber


def value_of(call: Callable[[], Awaitable[Any]]) -> OneValue:
    return OneValue(call, label="the handler")


async def test_a_value_and_the_end_come_together_and_the_handler_is_called_once() -> None:
    """Nothing runs before the first request, and however much is asked for there is one value."""
    calls: list[str] = []

    async def handler() -> bytes:
        calls.append("called")
        return b"value"

    async with subscribe(value_of(handler), demand=0) as stream:
        await trio.testing.wait_all_tasks_blocked()
        assert calls == []
        stream.request(5)
        stream.request(5)
        assert [element async for element in stream] == [b"value"]
    assert calls == ["called"]


async def test_what_the_handler_raises_is_the_streams_failure() -> None:
    """As it is: who tells the peer decides what of it crosses."""

    async def handler() -> bytes:
        raise KeyError("no such row")

    with pytest.raises(KeyError, match="no such row"):
        async with subscribe(value_of(handler)) as stream:
            await anext(stream)


async def test_none_is_no_value() -> None:
    """A handler that forgot to return is told so."""

    async def handler() -> None:
        await trio.lowlevel.checkpoint()

    with pytest.raises(UsageError, match="the handler returned None, which is never an element"):
        async with subscribe(value_of(handler)) as stream:
            await anext(stream)


async def test_cancelling_cancels_the_handler_and_silence_follows() -> None:
    """Its own cleanup runs; what that returns is dropped."""
    ended: list[str] = []

    async def handler() -> bytes:
        try:
            await trio.sleep_forever()
        except trio.Cancelled:
            ended.append("cancelled")
            raise
        return b"never"

    async with subscribe(value_of(handler)) as stream:
        await trio.testing.wait_all_tasks_blocked()
        stream.cancel()
        await trio.testing.wait_all_tasks_blocked()
        assert ended == ["cancelled"]


async def test_a_failure_after_the_cancel_is_the_scopes_to_tell() -> None:
    """Nobody else is left to hear it."""
    told: list[Exception] = []

    async def handler() -> bytes:
        try:
            await trio.sleep_forever()
        finally:
            raise ValueError("in cleanup")

    async with trio.open_nursery() as nursery:
        subscriber = ManualSubscriber()
        value_of(handler).publisher(nursery, on_violation=told.append).subscribe(subscriber)
        subscriber.request(1)
        await trio.testing.wait_all_tasks_blocked()
        subscriber.cancel()
    assert [str(error) for error in told] == ["in cleanup"]


async def test_a_nursery_that_is_cancelled_stops_the_handler_and_the_subscriber_hears_of_it() -> None:
    """Rule 1.4: no subscriber is left waiting."""

    class Hears(ManualSubscriber):
        def on_error(self, error: BaseException, /) -> None:
            heard.append(error)

    heard: list[BaseException] = []
    subscriber = Hears()
    async with trio.open_nursery() as nursery:
        value_of(trio.sleep_forever).attach(subscriber, Scope(nursery))
        subscriber.request(1)
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert isinstance(heard[0], PublisherStopped)
    late = Hears()
    value_of(trio.sleep_forever).attach(late, Scope(nursery))
    late.request(1)
    assert isinstance(heard[1], UsageError)


def test_its_repr_names_the_handler() -> None:
    """For logs."""
    assert repr(value_of(trio.sleep_forever)) == "<source the handler>"
