"""Memory under attack: a fixed number of bytes for each peer, whatever it asks for, and all of them given back.

No gap is asked for here: counting every allocation takes longer than a canary may wait. The same attacks have their rows, with canaries.
"""

import gc
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace

import pytest
import trio

from penstock.runtime import Server
from tests.hostile._arena import Certificates, beside_a_canary, wait_alone, wait_until
from tests.hostile._attacker import Attacker, open_stream
from tests.hostile._own_time import OwnTime
from tests.hostile._row import KIB, SCALED, Answer, To
from tests.hostile._table import ROWS
from tests.hostile._tongue import REACTIVESOCKET, RSIO, TONGUES, Tongue
from tests.hostile._wire import UNBOUNDED

AT_ONCE = [
    row
    for row in ROWS
    if (row.to, row.answer) == (To.SERVER, Answer.FATAL) and isinstance(row.act, bytes)
    if "tcp" in row.over and not row.within
]
PATIENT = replace(SCALED, keepalive=60.0, keepalive_timeout=60.0)
"""Counting takes so long that a canary would be taken for dead."""

SLACK = 32 * KIB
"""What tables keep of their size, once they have had it, and the deadlines in trio's heap."""

# A deadline that was moved stays in trio's heap until it comes, or until a thousand of them have come together, and its scope with it.
NOT_OURS = ("*/trio/_core/_run.py", "*/trio/_timeouts.py", "*/tests/hostile/*", "*/tracemalloc.py")


@pytest.fixture(autouse=True)
def traced() -> Iterator[None]:
    """Python's memory is counted for the length of a test."""
    tracemalloc.start()
    yield
    tracemalloc.stop()


def _allocated() -> int:
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


def _held() -> int:
    """Bytes that were allocated by anything but trio's clock and these tests."""
    gc.collect()
    traces = tracemalloc.take_snapshot().filter_traces([tracemalloc.Filter(inclusive=False, filename_pattern=each) for each in NOT_OURS])
    return sum(each.size for each in traces.statistics("filename"))


@pytest.mark.parametrize("tongue", TONGUES, ids=lambda tongue: tongue.name)
async def test_peers_that_ask_for_everything_and_read_nothing_cost_a_fixed_number_of_bytes(tongue: Tongue, files: Certificates) -> None:
    """What waits for one peer, what is on its way to it, and one element of each stream, in the worst case the largest; then nothing."""
    peers, streams = 10, 4
    found: dict[str, int] = {}

    async def act(server: Server, clock: OwnTime) -> None:
        before, before_all = _held(), _allocated()
        attackers = []
        for _ in range(peers):
            attacker = Attacker(await open_stream(server.addresses[0], files.authority, small=True), clock, tongue)
            wants = b"".join(tongue.subscribe("large" if stream % 2 else "endless", stream, UNBOUNDED) for stream in range(1, streams + 1))
            await attacker.send(tongue.hello() + wants)
            attackers.append(attacker)
        await wait_until(lambda: len(server._admission.open) == 1 + peers)
        most = 0
        while len(server._admission.open) == 1 + peers:  # until the first one's time is over
            most = max(most, _allocated() - before_all)
            await trio.sleep(0.02)
        found["each"] = most // peers
        await wait_alone(server)
        for attacker in attackers:
            await attacker.close()
        attackers.clear()
        del attacker
        found["left"] = _held() - before

    peace = await beside_a_canary(replace(PATIENT, write_stall=0.8), "tcp", files, act, tongue)
    assert found["each"] <= 2 * SCALED.outbound_high + streams * SCALED.max_element + SLACK
    assert found["left"] <= SLACK
    assert peace.left == {}


@pytest.mark.parametrize(("tongue", "least"), [(RSIO, 34), (REACTIVESOCKET, 34)], ids=["rsio", "reactivesocket"])
async def test_a_hundred_attacks_leave_as_much_as_none(tongue: Tongue, least: int, files: Certificates) -> None:
    """Each row that is answered at once, three times over: what the third round leaves is nothing."""
    after: list[int] = []
    rows = [row for row in AT_ONCE if row.tongue is tongue]

    async def act(server: Server, clock: OwnTime) -> None:
        for _ in range(3):
            for row in rows:
                attacker = Attacker(await open_stream(server.addresses[0], files.authority), clock, tongue)
                await attacker.send((tongue.hello(*row.extensions) if row.greets else b"") + bytes(row.act))  # type: ignore[arg-type]  # see AT_ONCE
                await attacker.listen()
                await attacker.close()
            await wait_alone(server)
            after.append(_held())

    peace = await beside_a_canary(replace(PATIENT, goodbye_timeout=0.01, linger=0.01), "tcp", files, act, tongue)
    assert len(rows) >= least
    assert after[2] - after[1] <= SLACK
    assert peace.left == {}
    assert peace.told == []
