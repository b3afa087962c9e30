"""A server writes how many lines its logs have left out."""

import logging

import pytest
import trio
import trio.testing

from penstock.core import LOG, limited_log, log_violation
from penstock.runtime import Service, serve
from penstock.runtime.server._log_summaries import SUMMARY_SECONDS, write_summaries


async def test_left_out_lines_are_counted_while_a_log_leaves_them_out(
    caplog: pytest.LogCaptureFixture, mock_clock: trio.testing.MockClock
) -> None:
    """Ten seconds after the first of them, and never while all is quiet."""
    log = limited_log("penstock.test.summaries", burst=1, per_second=0.001)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(write_summaries, log)
        for _ in range(2):
            for _ in range(5):
                log.write(logging.WARNING, "flood", "x")
            await trio.testing.wait_all_tasks_blocked()
            mock_clock.jump(SUMMARY_SECONDS)
            await trio.testing.wait_all_tasks_blocked()
            mock_clock.jump(SUMMARY_SECONDS)
            await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert caplog.messages == ["x", "flood: 4 lines were left out", "flood: 5 lines were left out"]


async def test_a_server_writes_them_when_it_stops(caplog: pytest.LogCaptureFixture) -> None:
    """Else the last flood would be known by its first lines only."""
    async with serve(Service(), "memory://summaries"):
        for _ in range(30):
            log_violation(ValueError("a fault"))
    assert caplog.messages[-1] == "ValueError: 20 lines were left out"
    assert {record.name for record in caplog.records} == {LOG}
