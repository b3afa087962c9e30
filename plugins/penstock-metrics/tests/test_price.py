"""An installed plugin whose numbers are not read costs nothing: the same calls, and the same
objects.

Calls are counted, and no time is measured: a count is the same on a busy machine.
"""

import logging
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
import trio
import trio.testing
from _metrics_helpers import quotes_service, registry_with
from penstock_metrics import Measurements

import penstock
from penstock.recording import Recorder
from penstock.spi import Registry, build_registry
from penstock.testing import seeded

WARM_UP = 30
ACTS = 50

MOST_MORE = 3
"""Calls that an act may cost more: one at its end, and those that the order of tasks may make. An
event for each stream, pushed to the plugin, was 90.
"""

MOST_MORE_COLLECTING = 6
"""The same while the numbers are read: the clock is three calls."""

MOST_MORE_RECORDING = 56
"""Calls of penstock for an act that a recorder leaves out: facts of the stream, and a decision, on
each side: 44 to 53. The order of tasks makes some of them.
"""

LIMITS = penstock.Limits(turn=1e9)
"""The real clock never ends a turn, so each run takes the same steps."""


def _service() -> penstock.Service:
    service = quotes_service()

    @service.request_response
    async def reverse(data: bytes) -> bytes:
        return data[::-1]

    @service.publisher("one")
    async def one() -> AsyncIterator[bytes]:
        yield b"one"

    return service


async def _request(peer: penstock.Peer) -> None:
    assert await peer.request_response(b"abc") == b"cba"


async def _stream(peer: penstock.Peer) -> None:
    async with peer.subscribe("one") as stream:
        assert [element async for element in stream] == [b"one"]


class _Calls:
    """Counts calls of functions of penstock and its plugins, and of the clock."""

    def __init__(self) -> None:
        self.count = 0

    def profile(self, frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and ("penstock" in code.co_filename or code.co_name == "current_time"):
            self.count += 1


async def _calls_of(
    act: Callable[[penstock.Peer], Awaitable[None]],
    protocol: str,
    registry: Registry,
    *,
    collecting: bool,
) -> int:
    """Return the least calls of an act, on both sides together: tasks may take turns otherwise."""
    found, measurements = [], Measurements()
    url = f"{protocol}+memory://price"
    async with penstock.serve(_service(), url, registry=registry, limits=LIMITS) as server:
        if collecting:
            measurements.collect(server)
        async with penstock.connect(url, registry=registry, limits=LIMITS) as peer:
            for _ in range(WARM_UP):
                await act(peer)
            before = sys.getprofile()
            for _ in range(ACTS):
                calls = _Calls()
                sys.setprofile(calls.profile)
                try:
                    await act(peer)
                    await trio.testing.wait_all_tasks_blocked()
                finally:
                    sys.setprofile(before)
                found.append(calls.count)
    return min(found)


def _run(*arguments: Any, **options: Any) -> int:
    async def main() -> int:
        return await _calls_of(*arguments, **options)

    # Time stands still: no timer is due.
    with seeded(1):
        return trio.run(main, clock=trio.testing.MockClock())


@pytest.mark.parametrize("protocol", ["rsio", "reactivesocket"])
@pytest.mark.parametrize("act", [_request, _stream], ids=["request", "stream of one"])
@pytest.mark.parametrize("collecting", [False, True], ids=["not collecting", "collecting"])
def test_a_stream_costs_the_same_calls_with_the_plugin(
    protocol: str, act: Any, *, collecting: bool
) -> None:
    """Its end is counted by one call. Nobody is called when it begins, and no event is made."""
    bare = _run(act, protocol, registry_with(object()), collecting=collecting)
    installed = _run(act, protocol, build_registry(), collecting=collecting)
    assert installed - bare <= (MOST_MORE_COLLECTING if collecting else MOST_MORE)


@pytest.mark.parametrize("protocol", ["rsio", "reactivesocket"])
@pytest.mark.parametrize("act", [_request, _stream], ids=["request", "stream of one"])
def test_a_recorder_that_leaves_a_stream_out_costs_a_decision(
    protocol: str, act: Any, tmp_path: Path
) -> None:
    """A recorder of one stream in a hundred is asked about each stream, on both sides."""
    pytest.importorskip("pyarrow", reason="a recorder needs the package pyarrow")
    bare = _run(act, protocol, registry_with(object()), collecting=False)
    with Recorder(tmp_path, sample=0.01) as recorder:
        watched = _run(act, protocol, build_registry([recorder]), collecting=False)
    assert 0 < watched - bare <= MOST_MORE_RECORDING


@pytest.mark.parametrize("protocol", ["rsio", "reactivesocket"])
@pytest.mark.parametrize("act", [_request, _stream], ids=["request", "stream of one"])
def test_the_access_log_costs_nothing_for_what_ends_well(
    protocol: str, act: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has lines for connections, and for streams that are refused or fail."""
    bare = _run(act, protocol, registry_with(object()), collecting=False)
    log = logging.getLogger("penstock.access")
    monkeypatch.setattr(log, "level", logging.INFO)
    log.manager._clear_cache()  # type: ignore[attr-defined]  # `setLevel` does so
    assert log.isEnabledFor(logging.INFO)
    logged = _run(act, protocol, registry_with(object()), collecting=False)
    assert logged - bare <= MOST_MORE
