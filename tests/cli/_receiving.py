"""A server that receives into a log on disk, and publishes it: a program for the tests."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from penstock.logs import DiskLog, Retention
from penstock.runtime import Service, receive

log = DiskLog(os.environ["PENSTOCK_TEST_LOG"], retention=Retention(max_bytes=1 << 40))


@asynccontextmanager
async def opened() -> AsyncIterator[None]:
    """Open the log while the service runs."""
    async with log:
        yield


service = Service(
    lifespan=opened, authenticate=lambda _scheme, token, _peer: token.decode() or None
)
receive(service, "orders", log)
service.publish("sales", log)
