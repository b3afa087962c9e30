"""Tests of leases, on both sides."""

from collections.abc import Awaitable, Callable
from dataclasses import replace

import attrs
import penstock_rsocket as rsocket
import pytest
import trio
from _raw import SETUP, URL, raw_client, raw_server, route
from penstock_rsocket import (
    Cancel,
    Error,
    ErrorCode,
    Keepalive,
    Lease,
    Payload,
    RequestFnf,
    RequestResponse,
    RequestStream,
    SetupData,
)
from trio.testing import MockClock as Clock

import penstock
from penstock.api import Limits

WITH_LEASES = SetupData(leases=True)


async def quietly(call: Callable[..., Awaitable[object]], *arguments: object) -> None:
    with trio.CancelScope():
        try:
            await call(*arguments)
        except penstock.PenstockError:
            return


async def test_requests_wait_for_a_lease_in_their_order(autojump_clock: Clock) -> None:
    """The last lease counts, and its number is kept."""
    async with raw_server(setup=WITH_LEASES) as (peer, raw), trio.open_nursery() as nursery:
        assert isinstance(await raw.next(), Lease)  # each side grants
        nursery.start_soon(quietly, peer.request, "a")
        await trio.testing.wait_all_tasks_blocked()
        await peer.fire_and_forget(b"b")
        nursery.start_soon(quietly, peer.request_response, b"c")
        await trio.testing.wait_all_tasks_blocked()
        await raw.send(Keepalive(respond=True, data=b"!"))
        assert await raw.next(keepalives=True) == Keepalive(data=b"!")  # and no request
        await raw.send(Lease(ttl=1000, requests=2))
        assert await raw.next() == RequestResponse(stream_id=1, metadata=route("a"))
        assert await raw.next() == RequestFnf(stream_id=3, data=b"b")
        await raw.send(Lease(ttl=1000, requests=0), Lease(ttl=1000, requests=1))
        assert await raw.next() == RequestResponse(stream_id=5, data=b"c")
        nursery.cancel_scope.cancel()


async def test_a_request_waits_for_a_bounded_time(autojump_clock: Clock) -> None:
    """Then it says so, and nothing was sent."""
    async with raw_server(setup=WITH_LEASES) as (peer, raw):
        assert isinstance(await raw.next(), Lease)
        await raw.send(Lease(ttl=10, requests=9))
        await trio.sleep(1)  # it is over
        with pytest.raises(penstock.Rejected, match="no lease") as caught:
            await peer.request("a")
        assert not caught.value.processed
        assert caught.value.temporary


async def test_a_bounded_number_of_requests_waits(autojump_clock: Clock) -> None:
    """`Limits.max_subscriptions`; a cancel frees a place and sends nothing."""
    limits = replace(Limits(), max_subscriptions=1)
    async with raw_server(setup=WITH_LEASES, limits=limits) as (peer, raw):
        assert isinstance(await raw.next(), Lease)
        async with peer.request_stream(b"first", demand=5):
            with pytest.raises(penstock.Rejected, match="1 requests wait"):
                await peer.request("a")
        async with peer.request_stream(b"second", demand=5):
            await raw.send(Lease(ttl=1000, requests=5))
            assert await raw.next() == RequestStream(stream_id=5, demand=5, data=b"second")
        assert await raw.next() == Cancel(stream_id=5)


async def test_a_server_grants_from_its_limits(autojump_clock: Clock) -> None:
    """A request above the lease gets REJECTED; a second later there is another lease."""
    service = penstock.Service()

    @service.request("now")
    async def now() -> bytes:
        return b"12:00"

    limits = replace(Limits(), max_subscriptions=2)
    async with raw_client(service, attrs.evolve(SETUP, leases=True), limits=limits) as raw:
        assert await raw.next() == Lease(ttl=10_000, requests=2)
        await raw.send(
            *(RequestResponse(stream_id=each, metadata=route("now")) for each in (1, 3, 5))
        )
        got = [await raw.next() for _ in range(3)]
        assert Error(stream_id=5, code=ErrorCode.REJECTED, data=b"no lease") in got
        assert Payload(stream_id=3, data=b"12:00", complete=True) in got
        assert await raw.next() == Lease(ttl=10_000, requests=2)
        await raw.send(RequestResponse(stream_id=7, metadata=route("now")))
        assert await raw.next() == Payload(stream_id=7, data=b"12:00", complete=True)
        assert await raw.next() == Lease(ttl=10_000, requests=2)  # after half of its time


async def test_both_sides_are_penstock(autojump_clock: Clock) -> None:
    """A client with leases asks as one without."""
    service = penstock.Service()

    @service.request("now")
    async def now() -> bytes:
        return b"12:00"

    async with penstock.serve(service, URL), penstock.connect(URL, setup=WITH_LEASES) as peer:
        for _ in range(5):
            assert await peer.request("now") == b"12:00"


async def test_a_client_without_leases_is_not_counted(autojump_clock: Clock) -> None:
    """No LEASE comes, and one that a server sends changes nothing."""
    async with raw_server() as (peer, raw), trio.open_nursery() as nursery:
        await raw.send(Lease(ttl=1, requests=0))
        nursery.start_soon(quietly, peer.request, "a")
        frame = await raw.next()
        assert isinstance(frame, rsocket.RequestResponse)
        nursery.cancel_scope.cancel()
