"""A program for the scene of a website: FastAPI under uvicorn, with a service on asyncio. It prints
its port.
"""

import asyncio
from collections.abc import AsyncIterator

import uvicorn
from fastapi import FastAPI
from penstock_http import AsgiApp

from penstock import aio

service = aio.Service()
counts = {"made": 0, "open": 0}


@service.publisher("tokens", serializer="text")
async def tokens() -> AsyncIterator[str]:
    """Stand in for a model: tokens without end, as fast as they are requested."""
    counts["open"] += 1
    try:
        while True:
            await asyncio.sleep(0)
            counts["made"] += 1
            yield f"token-{counts['made']}"
    finally:
        counts["open"] -= 1


async def seen() -> dict[str, int]:
    """Return how many tokens were made, and how many generators are open."""
    return counts


site = FastAPI()
site.add_api_route("/seen", seen)
site.mount("/streams", AsgiApp(service))

if __name__ == "__main__":
    config = uvicorn.Config(site, port=0, log_level="error", access_log=False)
    listening = config.bind_socket()
    listening.listen()  # from here on a client waits until the site is there
    print(listening.getsockname()[1], flush=True)
    uvicorn.Server(config).run([listening])
