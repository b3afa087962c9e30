"""The same over real sockets: a proxy hands on so many bytes and closes, in good order or with a reset, in the clear and over TLS."""

import gc
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Final

import pytest
import trio
import trustme

from penstock.api import ConnectionLost
from penstock.plugins import Tls, TransportOptions
from penstock.runtime import Server, connect, serve
from penstock.session._receiving_stream import ReceivingStream
from penstock.testing import LeakCensus
from tests._real_time import HANGS_AFTER
from tests.cuts import _planted
from tests.cuts._proxy import Proxy
from tests.cuts._scenarios import LIMITS, SMALL, everything
from tests.cuts._spies import Spy, overheard
from tests.cuts._stage import COMPLETED, Stage
from tests.cuts._wire import Cut, How, Way

OPEN_FILES: Final = Path("/proc/self/fd")
ENDINGS: Final = (How.FIN, How.RST)


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> Tls:
    """A certificate for this machine, and who has issued it."""
    folder: Path = tmp_path_factory.mktemp("tls")
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(folder / "ca.pem"))
    authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(str(folder / "server.pem"))
    return Tls(certificate=folder / "server.pem", authorities=folder / "ca.pem", client_may_be_unknown=True)


def _cuts(carried: dict[Way, int], *, most: int | None = None) -> Iterator[Cut]:
    """Each byte of each way, or `most` of them, spread; in each manner that a socket can show."""
    for way, count in carried.items():
        places = list(range(count + 1))
        if most is not None and len(places) > most:
            places = sorted(Random(str(way)).sample(places, most))
        yield from (Cut(way=way, after=after, how=how) for after in places for how in ENDINGS)


async def _read_small(stage: Stage, url: str, options: TransportOptions) -> None:
    try:
        async with connect(url, limits=stage.limits, options=options, on_violation=stage.hear) as peer:
            await stage.read(peer, "small", SMALL, demand=2)
    except ConnectionLost:
        stage.cue.set()  # nobody was reached


async def _wait_alone(server: Server, census: LeakCensus) -> None:
    """Return when nothing of the connection runs any more."""
    while server.peers or any("penstock" in leak for leak in census.leaks()):
        await trio.lowlevel.checkpoint()


async def _attempt(proxy: Proxy, server: Server, served: Stage, cut: Cut | None, url: str, options: TransportOptions) -> bool:
    """One run: a client reads through the proxy. Then nothing of it is left, here or there. Return whether the cut was felt."""
    proxy.cut = cut
    stage, spies, census = Stage(LIMITS), list[Spy](), LeakCensus()
    with trio.fail_after(HANGS_AFTER), overheard(spies):
        await _read_small(stage, url, options)
        await _wait_alone(server, census)
    faults = [fault for each in (*stage.readings, *spies) for fault in each.faults()]
    faults += [f"told: {each}" for each in (*stage.told, *served.told)]
    faults += [f"generator {name} was not closed" for name in served.open_generators()]
    ends = [str(reading.end).split(":")[0] for reading in stage.readings]
    allowed = {COMPLETED} if cut is None else {COMPLETED, "ConnectionLost"}
    if not (len(ends) == 1 and allowed.issuperset(ends)) and not (cut is not None and stage.cue.is_set()):
        faults.append(f"the readings ended with {ends}")
    assert faults == [], str(cut)
    return ends != [COMPLETED]


async def _sweep(scheme: str, options: TransportOptions, *, most: int | None = None) -> tuple[int, int]:
    """Cut a short connection at each byte (or at `most` of each way); return how many runs that took, and how many lost something."""
    served = Stage(LIMITS)
    runs = lost = 0
    async with serve(
        everything(served), f"rsio+{scheme}://127.0.0.1:0", limits=LIMITS, options=options, on_violation=served.hear
    ) as server:
        proxy = Proxy(int(server.addresses[0].rsplit(":", 1)[1]))
        async with trio.open_nursery() as nursery:
            await nursery.start(proxy.run)
            url = f"{scheme}://127.0.0.1:{proxy.port}"
            lost += await _attempt(proxy, server, served, None, url, options)
            for cut in _cuts(dict(proxy.carried), most=most):
                lost += await _attempt(proxy, server, served, cut, url, options)
                runs += 1
            nursery.cancel_scope.cancel()
    return runs, lost


async def test_a_tcp_connection_may_be_cut_at_any_byte() -> None:
    """Every byte of a handshake and a stream, both ways: nothing is left, nothing is delivered in part, nobody is told of a fault."""
    runs, lost = await _sweep("tcp", TransportOptions())
    assert runs > 120
    assert lost > runs / 2


async def test_a_tls_connection_may_be_cut_anywhere(tls: Tls) -> None:
    """The same, in the middle of TLS's own handshake and of its records: a spread of places."""
    runs, lost = await _sweep("tls", TransportOptions(tls=tls), most=50)
    assert runs == 200
    assert lost > runs / 2


async def test_a_gap_over_sockets_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sweep over sockets can fail, too: a lost connection that looks like the end of the stream is seen."""
    monkeypatch.setattr(ReceivingStream, "receive_error", _planted.as_completed)
    with pytest.RaisesGroup(pytest.RaisesExc(AssertionError, match="a silent gap"), flatten_subgroups=True):
        await _sweep("tcp", TransportOptions(), most=20)


@pytest.fixture(autouse=True)
def _files_are_closed() -> Iterator[None]:
    """After each test no more files are open than before it."""
    before = _open_files()
    yield
    gc.collect()  # what an exception's traceback still holds is not left behind
    assert _open_files() <= before


def _open_files() -> int:
    return len(list(OPEN_FILES.iterdir())) if OPEN_FILES.is_dir() else 0  # no system file lists them: then the tasks must do
