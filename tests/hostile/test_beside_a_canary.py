"""The judgement of attacks can fail:
a canary that is kept waiting has a gap, and objects that are left behind are found.
"""

from pathlib import Path
from time import monotonic, sleep, thread_time

import pytest
import trio

from penstock.runtime import Server
from tests.hostile._attack_clock import AttackClock
from tests.hostile._attacker import open_stream
from tests.hostile._beside_a_canary import Aftermath, beside_a_canary
from tests.hostile._canary import GAP
from tests.hostile._setup import Certificates, Setup


async def test_a_blocked_event_loop_is_a_gap(files: Certificates) -> None:
    """150 ms of work without a turn for another task are more than `GAP`."""

    async def attack(server: Server, clock: AttackClock) -> None:
        ends = clock.now() + 1.5 * GAP
        while clock.now() < ends:
            pass
        await trio.lowlevel.checkpoint()

    aftermath = await beside_a_canary(Setup(files=files, stretch=1), attack)
    assert aftermath.gap > GAP


async def test_an_object_that_is_left_behind_is_found(files: Certificates) -> None:
    """A socket that the attack keeps open stands in the census."""
    kept: list[trio.abc.Stream] = []

    async def attack(server: Server, clock: AttackClock) -> None:
        listener = (await trio.open_tcp_listeners(0, host="127.0.0.1"))[0]
        kept.append(
            await open_stream("tcp://{}:{}".format(*listener.socket.getsockname()), files.authority)
        )
        await listener.aclose()

    left = (await beside_a_canary(Setup(files=files, stretch=1), attack)).left
    await kept.pop().aclose()
    assert left["trio.SocketStream"] == left["open files"] == 1


@pytest.mark.parametrize(
    "aftermath",
    [
        Aftermath(gap=2.1 * GAP, left={}, told=[], stretch=2),
        Aftermath(gap=0, left={"socket.socket": 1}, told=[], stretch=2),
        Aftermath(gap=0, left={}, told=[ValueError("hm")], stretch=2),
    ],
    ids=["gap", "left", "told"],
)
def test_each_fault_of_an_aftermath_fails_the_check(aftermath: Aftermath) -> None:
    """A gap above the stretched bound, an object left behind, a report to `on_violation`."""
    with pytest.raises(AssertionError):
        aftermath.check()
    Aftermath(gap=1.9 * GAP, left={}, told=[], stretch=2).check()


async def test_time_in_the_queue_for_a_processor_does_not_count(tmp_path: Path) -> None:
    """The clock subtracts the system's count of it: here half a second."""
    (tmp_path / "schedstat").write_text("1000000 500000000 3\n", encoding="utf-8")
    clock = AttackClock(schedstat=tmp_path / "schedstat")
    before = monotonic()
    now = clock.now()
    assert before - 0.5 <= now <= monotonic() - 0.5
    clock.close()


async def test_without_the_count_of_the_system_work_and_sleep_count(tmp_path: Path) -> None:
    """The clock then adds the processor time of the thread and the time that trio slept.
    Other time does not count.
    """
    clock = AttackClock(schedstat=tmp_path / "missing")
    began, began_work = clock.now(), thread_time()
    while thread_time() - began_work < 0.02:
        pass
    assert clock.now() - began >= 0.02
    before_sleep = clock.now()
    await trio.sleep(0.02)
    assert clock.now() - before_sleep >= 0.019
    blocked, blocked_on_the_wall = clock.now(), monotonic()
    sleep(0.1)  # noqa: ASYNC251 (stands for any time in which this thread does not run)
    assert clock.now() - blocked < (monotonic() - blocked_on_the_wall) / 2
    clock.close()
