"""Both logs of penstock keep the contract of `Log`."""

from pathlib import Path

from penstock.testing import check_log
from tests.logs._opening import disk_in, open_ring


async def test_a_ring_log_keeps_the_contract() -> None:
    """Every check of the contract passes on a log in memory."""
    await check_log(open_ring)


async def test_a_disk_log_keeps_the_contract(tmp_path: Path) -> None:
    """Every check of the contract passes on a log in a file."""
    await check_log(disk_in(tmp_path))
