"""Writes how many lines the bounded logs have left out, while a server runs and when it stops."""

from typing import Final

import trio

from penstock.core import LimitedLog

SUMMARY_SECONDS: Final = 10.0
"""Seconds between two lines about left-out lines of one log, if no other line says it before."""


async def write_summaries(*logs: LimitedLog) -> None:
    """Call `LimitedLog.flush` of each log while it leaves lines out, and at the end;
    until cancelled.
    """
    try:
        async with trio.open_nursery() as nursery:
            for log in logs:
                nursery.start_soon(_write_summaries, log)
    finally:
        # A flood often ends with the server that was flooded.
        for log in logs:
            log.flush()


async def _write_summaries(log: LimitedLog) -> None:
    while True:
        # No timer runs while nothing is left out.
        await log.left_out.wait()
        await trio.sleep(SUMMARY_SECONDS)
        log.flush()
