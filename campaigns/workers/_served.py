"""The service of the campaign: a log that one worker writes and all of them publish."""

import os
from pathlib import Path

import trio

from penstock import DiskLog, Retention, Server, Service, this_worker

LOG = Path(os.environ.get("CAMPAIGN_LOG", "campaign.log"))

service = Service()
log = DiskLog(LOG, read_only=True)
service.publish("numbers", log)


@service.publisher("who")
async def who():
    """The process that serves."""
    yield b"%d" % os.getpid()


async def write() -> None:
    """Append numbers, some at a time."""
    async with DiskLog(LOG, retention=Retention(max_bytes=1 << 30)) as writing:
        while True:
            first = writing.latest()["0"]
            await writing.append([b"%d" % number for number in range(first, first + 10)])
            await trio.sleep(0.005)


async def main(_: Server, task_status: trio.TaskStatus[None]) -> None:
    """Publish the log, and write it in one of the workers."""
    async with log, trio.open_nursery() as nursery:
        task_status.started()
        nursery.start_soon(this_worker().run_alone, write)
