"""Streams beside the other paths of a site: python -m anycorn --worker-class trio --bind
127.0.0.1:7002 mounted:site
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from penstock_http import AsgiApp
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route

import penstock

service = penstock.Service()


@service.publisher("numbers/{count}", serializer="json")
async def numbers(count: int) -> AsyncIterator[int]:
    for number in range(count):
        yield number


async def home(_request: Request) -> PlainTextResponse:
    return PlainTextResponse("numbers: PUT /streams/p/numbers/3\n")


@asynccontextmanager
async def lifespan(_site: Starlette) -> AsyncIterator[None]:
    async with penstock.serve(service, "asgi://streams"):
        yield


site = Starlette(
    routes=[Route("/", home), Mount("/streams", AsgiApp("asgi://streams"))], lifespan=lifespan
)
