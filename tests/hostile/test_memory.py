"""Memory under attack: each peer costs a bounded number of bytes for any number of requests,
and gives all of them back.

No gap of the canary is judged here, because counting every allocation blocks the event loop for
longer than `GAP`. The rows of the same attacks judge it.
"""

import gc
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace

import pytest
import trio
from penstock_tck.wire.rsio import UNBOUNDED

from penstock.runtime import Server
from tests.hostile._attack_clock import AttackClock
from tests.hostile._attacker import Attacker, open_stream
from tests.hostile._attacker_protocol import PROTOCOLS, REACTIVESOCKET, RSIO, AttackerProtocol
from tests.hostile._beside_a_canary import beside_a_canary, wait_alone, wait_until
from tests.hostile._control_canary import ControlCanary
from tests.hostile._row import KIB, SCALED, Answer, Target
from tests.hostile._setup import Certificates, Setup
from tests.hostile._table import ROWS

ANSWERED_AT_ONCE = [
    row
    for row in ROWS
    if (row.target, row.answer) == (Target.SERVER, Answer.FATAL) and isinstance(row.attack, bytes)
    if "tcp" in row.schemes and not row.within
]
PATIENT = replace(SCALED, keepalive=60.0, keepalive_timeout=60.0)
"""Counting blocks the event loop for longer than the scaled keepalive allows a canary to be
silent.
"""

SLACK = 32 * KIB
"""Bytes that may remain, times the stretch: hash tables keep their size, and trio's heap keeps each
deadline that was moved, 136 bytes for each new timer. Measured for an attack of 0.8 s: 17 KiB, and
of 6.4 s: 34 KiB.
"""

# A deadline that was moved stays in trio's heap until it comes or until 1,000 of them have
# accumulated, and its scope with it.
NOT_OURS = ("*/trio/_core/_run.py", "*/trio/_timeouts.py", "*/tests/hostile/*", "*/tracemalloc.py")


@pytest.fixture(autouse=True)
def _tracemalloc() -> Iterator[None]:
    tracemalloc.start()
    yield
    tracemalloc.stop()


def _allocated() -> int:
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


def _held() -> int:
    """Return how many bytes are held that neither trio's clock nor these tests have allocated."""
    gc.collect()
    traces = tracemalloc.take_snapshot().filter_traces(
        [tracemalloc.Filter(inclusive=False, filename_pattern=each) for each in NOT_OURS]
    )
    return sum(each.size for each in traces.statistics("filename"))


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda protocol: protocol.name)
async def test_peers_that_request_everything_and_read_nothing_cost_a_bounded_number_of_bytes(
    protocol: AttackerProtocol, files: Certificates, control: ControlCanary
) -> None:
    """A peer costs its send buffer, the bytes being sent, and one element of each stream. When
    it has gone, it costs nothing.
    """
    peers, streams = 10, 4

    async def attempt(stretch: float) -> None:
        found: dict[str, int] = {}

        async def attack(server: Server, clock: AttackClock) -> None:
            before, before_all = _held(), _allocated()
            attackers = []
            for _ in range(peers):
                attacker = Attacker(
                    await open_stream(server.addresses[0], files.authority, small_buffer=True),
                    clock,
                    protocol,
                )
                names = ["large" if stream % 2 else "endless" for stream in range(1, streams + 1)]
                wants = b"".join(
                    protocol.subscribe(name, stream, UNBOUNDED)
                    for stream, name in enumerate(names, 1)
                )
                await attacker.send(protocol.hello() + wants)
                attackers.append(attacker)
            await wait_until(lambda: len(server._admission.open) == 1 + peers)
            most = 0
            # Until `write_stall` ends the first of them.
            while len(server._admission.open) == 1 + peers:
                most = max(most, _allocated() - before_all)
                await trio.sleep(0.02)
            found["each"] = most // peers
            await wait_alone(server)
            for attacker in attackers:
                await attacker.close()
            attackers.clear()
            del attacker
            found["left"] = _held() - before

        limits = replace(PATIENT, write_stall=0.8)
        aftermath = await beside_a_canary(
            Setup(files=files, protocol=protocol, unstretched=limits, stretch=stretch), attack
        )
        assert (
            found["each"]
            <= 2 * SCALED.outbound_high + streams * SCALED.max_element + SLACK * stretch
        )
        assert found["left"] <= SLACK * stretch
        assert aftermath.left == {}

    await control.judge(attempt)


@pytest.mark.parametrize(
    ("protocol", "least"), [(RSIO, 34), (REACTIVESOCKET, 34)], ids=["rsio", "reactivesocket"]
)
async def test_a_hundred_attacks_leave_no_memory_behind(
    protocol: AttackerProtocol, least: int, files: Certificates, control: ControlCanary
) -> None:
    """Each row that is answered at once is run three times;
    the third round leaves no more than the second.
    """
    rows = [row for row in ANSWERED_AT_ONCE if row.protocol is protocol]
    assert len(rows) >= least

    async def attempt(stretch: float) -> None:
        after: list[int] = []

        async def attack(server: Server, clock: AttackClock) -> None:
            for _ in range(3):
                for row in rows:
                    attacker = Attacker(
                        await open_stream(server.addresses[0], files.authority), clock, protocol
                    )
                    hello = protocol.hello(*row.extensions) if row.says_hello else b""
                    await attacker.send(hello + bytes(row.attack))  # type: ignore[arg-type]  # all of ANSWERED_AT_ONCE are bytes
                    await attacker.listen()
                    await attacker.close()
                await wait_alone(server)
                after.append(_held())

        limits = replace(PATIENT, goodbye_timeout=0.01, linger=0.01)
        aftermath = await beside_a_canary(
            Setup(files=files, protocol=protocol, unstretched=limits, stretch=stretch), attack
        )
        assert after[2] - after[1] <= SLACK * stretch
        aftermath.check_all_but_the_gap()

    await control.judge(attempt)
