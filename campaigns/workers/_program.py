"""The server of the campaign: ``python -m campaigns.workers._program URL HANDOVER``."""

import logging
import sys
from dataclasses import replace

import trio

import penstock
from campaigns.workers._served import LOG
from penstock import DiskLog, Limits, Retention


async def make_log() -> None:
    """A log that is to be read must exist."""
    async with DiskLog(LOG, retention=Retention(max_bytes=1 << 30)):
        pass


def main(url: str, handover: str) -> int:
    """Serve until a signal comes."""
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    if not LOG.exists():
        trio.run(make_log)
    return penstock.serve_workers(
        "campaigns.workers._served:service",
        url,
        workers=2,
        main="campaigns.workers._served:main",
        limits=replace(Limits(), drain=5.0),
        resume=True,
        handover=handover,
    )


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
