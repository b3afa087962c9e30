"""Cuts over real sockets: a proxy forwards a given number of bytes, then closes or resets both
sides. With and without TLS.
"""

import gc
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Final

import pytest
import trio

from campaigns.cuts import _injected_faults
from campaigns.cuts._cuttable_transport import Cut, CutMode, Direction
from campaigns.cuts._proxy import Proxy
from campaigns.cuts._run_context import COMPLETED, RunContext
from campaigns.cuts._scenarios import LIMITS, SMALL, full_service
from campaigns.cuts._signal_recorder import SignalRecorder, recording_signals
from penstock.api import ConnectionLost
from penstock.runtime import Server, connect, serve
from penstock.session._receiving_stream import ReceivingStream
from penstock.spi import Tls, TransportOptions
from penstock.testing import LeakCensus
from tests._certificates import certify
from tests._real_time import HANGS_AFTER

OPEN_FILES: Final = Path("/proc/self/fd")
SOCKET_MODES: Final = (CutMode.FIN, CutMode.RST)


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> Tls:
    """A certificate for 127.0.0.1, and the authority that issued it."""
    return certify(tmp_path_factory.mktemp("tls"))


def _cuts(delivered: dict[Direction, int], *, per_direction: int | None = None) -> Iterator[Cut]:
    """Return the cuts at each byte of each direction, or at a random sample of `per_direction`
    bytes, in each mode of `SOCKET_MODES`.
    """
    for direction, count in delivered.items():
        places = list(range(count + 1))
        if per_direction is not None and len(places) > per_direction:
            places = sorted(Random(str(direction)).sample(places, per_direction))
        yield from (
            Cut(direction=direction, after=after, mode=mode)
            for after in places
            for mode in SOCKET_MODES
        )


async def _read_small(context: RunContext, url: str, options: TransportOptions) -> None:
    try:
        async with connect(
            url, limits=context.limits, options=options, on_violation=context.record_violation
        ) as peer:
            await context.read(peer, "small", SMALL, demand=2)
    except ConnectionLost:
        context.signal.set()  # the handshake failed, so there may be no reading


async def _wait_closed(server: Server, census: LeakCensus) -> None:
    """Return when the server has no peers and no task of the connection runs."""
    while server.peers or any("penstock" in leak for leak in census.leaks()):
        await trio.lowlevel.checkpoint()


async def _run_once(
    proxy: Proxy,
    server: Server,
    served: RunContext,
    cut: Cut | None,
    url: str,
    options: TransportOptions,
) -> bool:
    """Read a stream through the proxy, then check that client and server have freed it. Return
    whether the stream was lost.
    """
    proxy.cut = cut
    context, recorders, census = RunContext(LIMITS), list[SignalRecorder](), LeakCensus()
    with trio.fail_after(HANGS_AFTER), recording_signals(recorders):
        await _read_small(context, url, options)
        await _wait_closed(server, census)
    faults = [fault for each in (*context.readings, *recorders) for fault in each.faults()]
    faults += [
        f"on_violation received: {violation}"
        for violation in (*context.violations, *served.violations)
    ]
    faults += [f"generator {name} was not closed" for name in served.open_generators()]
    ends = [str(reading.end).split(":")[0] for reading in context.readings]
    allowed = {COMPLETED} if cut is None else {COMPLETED, "ConnectionLost"}
    if not (len(ends) == 1 and allowed.issuperset(ends)) and not (
        cut is not None and context.signal.is_set()
    ):
        faults.append(f"the readings ended with {ends}")
    assert faults == [], str(cut)
    return ends != [COMPLETED]


async def _sweep(
    scheme: str, options: TransportOptions, *, per_direction: int | None = None
) -> tuple[int, int]:
    """Cut a short connection at each place of `_cuts`. Return the number of cuts, and the number
    of runs that lost the stream.
    """
    served = RunContext(LIMITS)
    runs = lost = 0
    async with serve(
        full_service(served),
        f"rsio+{scheme}://127.0.0.1:0",
        limits=LIMITS,
        options=options,
        on_violation=served.record_violation,
    ) as server:
        proxy = Proxy(server.addresses[0].port)
        async with trio.open_nursery() as nursery:
            await nursery.start(proxy.run)
            url = f"{scheme}://127.0.0.1:{proxy.port}"
            lost += await _run_once(proxy, server, served, None, url, options)
            for cut in _cuts(dict(proxy.delivered), per_direction=per_direction):
                lost += await _run_once(proxy, server, served, cut, url, options)
                runs += 1
            nursery.cancel_scope.cancel()
    return runs, lost


async def test_tcp_connection_is_freed_after_cut_at_every_byte() -> None:
    """After a cut at any byte of a handshake and a stream, all is freed, no partial element is
    delivered, and no violation is reported.
    """
    runs, lost = await _sweep("tcp", TransportOptions())
    assert runs > 120
    assert lost > runs / 2


@pytest.mark.heavy
async def test_tls_connection_is_freed_after_cut(tls: Tls) -> None:
    """The same holds for cuts inside the TLS handshake and inside TLS records,
    at a sample of 50 bytes for each direction.
    """
    runs, lost = await _sweep("tls", TransportOptions(tls=tls), per_direction=50)
    assert runs == 200
    assert lost > runs / 2


async def test_sweep_over_sockets_reports_injected_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sweep over sockets fails if a lost connection is reported as a completed stream."""
    monkeypatch.setattr(
        ReceivingStream, "receive_error", _injected_faults.complete_instead_of_failing
    )
    with pytest.RaisesGroup(
        pytest.RaisesExc(AssertionError, match="a silent gap"), flatten_subgroups=True
    ):
        await _sweep("tcp", TransportOptions(), per_direction=20)


@pytest.fixture(autouse=True)
def _files_are_closed() -> Iterator[None]:
    """Fail a test that leaves more files open than before it."""
    before = _count_open_files()
    yield
    gc.collect()  # the traceback of an expected exception may still refer to a socket
    assert _count_open_files() <= before


def _count_open_files() -> int:
    # Without /proc, only tasks and objects are checked.
    return len(list(OPEN_FILES.iterdir())) if OPEN_FILES.is_dir() else 0
