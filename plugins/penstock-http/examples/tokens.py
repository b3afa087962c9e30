"""The tokens of a model in pages of FastAPI: uvicorn --port 7002 tokens:site"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI
from fastapi.responses import PlainTextResponse
from penstock_http import AsgiApp

from penstock import Retention, RingLog, aio
from penstock.spi import TransportOptions

service = aio.Service()
# A page that has lost its network may go on within 5 s. One that is closed says so.
streams = AsgiApp(service, options=TransportOptions(extra={"http.idle": 5}))
kept: dict[str, RingLog] = {}  # the tokens of each answer
stopped = asyncio.Event()


async def model(prompt: str) -> AsyncIterator[str]:
    """Stand in for the SDK of a model."""
    for number in range(100_000):
        await asyncio.sleep(0.02)
        yield f"{prompt}-{number}"


@service.publisher("answer/{prompt}", serializer="text")
async def answer(prompt: str) -> AsyncIterator[str]:
    """Let the model make tokens, as the page requests them, and keep them for other pages."""
    log = kept[prompt] = RingLog(retention=Retention(max_count=100_000))
    try:
        async for token in model(prompt):
            await aio.in_trio(log.append, [token.encode()])
            yield token
    finally:
        stopped.set()


@service.publisher("kept/{prompt}", log=True)
def kept_answer(prompt: str) -> RingLog:
    return kept[prompt]


@asynccontextmanager
async def lifespan(_site: FastAPI) -> AsyncIterator[None]:
    async with streams.serving():
        yield


site = FastAPI(lifespan=lifespan)
site.mount("/streams", streams)


@site.get("/stopped")
async def wait_stopped() -> PlainTextResponse:
    """Answer when the model has been stopped."""
    await stopped.wait()
    stopped.clear()
    return PlainTextResponse("the model has stopped\n")
