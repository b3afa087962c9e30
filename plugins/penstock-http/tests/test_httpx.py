"""httpx and httpx2 over real sockets: clients in Python that know nothing of the mapping.
`nox -s interop` installs them.
"""

import importlib
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urljoin

import pytest
from _site_in_memory import service

from penstock import serve

BATCHES = {"Accept-Encoding": "X-Rsio-LengthPrefixedElements"}


@pytest.fixture(params=["httpx", "httpx2"])
def library(request: pytest.FixtureRequest) -> Any:
    """The module of the client."""
    pytest.importorskip(request.param)
    return importlib.import_module(request.param)


@asynccontextmanager
async def _client(library: Any, version: str) -> AsyncIterator[tuple[Any, str]]:
    """Yield a client that speaks one version of HTTP alone, and the URL of the publishers."""
    is_http2 = version == "HTTP/2"
    async with (
        serve(service(), "http://127.0.0.1:0") as server,
        library.AsyncClient(
            http1=not is_http2, http2=is_http2, trust_env=False, timeout=60
        ) as client,
    ):
        yield client, f"{server.addresses[0]}/p/"


@pytest.mark.parametrize("version", ["HTTP/1.1", "HTTP/2"])
async def test_the_life_of_a_stream(library: Any, version: str) -> None:
    """Subscribe, a poll of one, a batch, more demand, the completion;
    then a cancel finds nothing.
    """
    async with _client(library, version) as (client, publishers):
        created = await client.put(f"{publishers}numbers/5?request=1")
        assert (created.status_code, created.http_version) == (201, version)
        url = urljoin(str(created.url), created.headers["Location"])
        assert (await client.put(url)).content == b"0"
        batch = await client.put(f"{url}?request=3", headers=BATCHES)
        assert batch.headers["Content-Encoding"] == "X-Rsio-LengthPrefixedElements"
        assert _elements(batch.content) == [b"1", b"2", b"3"]
        assert (await client.put(url)).status_code == 204
        assert (await client.put(f"{url}/requestMore=5")).status_code == 200
        assert [(await client.put(url)).status_code for _ in range(2)] == [200, 410]
        assert (await client.put(f"{url}/cancel")).status_code == 404


@pytest.mark.parametrize("version", ["HTTP/1.1", "HTTP/2"])
async def test_a_streamed_batch_and_a_part_of_it_again(library: Any, version: str) -> None:
    """The answer ends with the demand.
    A poll with a position gets the elements after it once more.
    """
    headers = {**BATCHES, "X-Rsio-Delivery": "stream"}
    async with _client(library, version) as (client, publishers):
        created = await client.put(f"{publishers}numbers/5?request=3")
        url = urljoin(str(created.url), created.headers["Location"])
        async with client.stream("PUT", f"{url}?request=1", headers=headers) as answer:
            body = b"".join([part async for part in answer.aiter_raw()])
        assert _elements(body) == [b"0", b"1", b"2", b"3"]
        again = await client.put(url, headers={**BATCHES, "X-Rsio-Position": "2"})
        assert _elements(again.content) == [b"2", b"3"]


def _elements(body: bytes) -> list[bytes]:
    found = []
    while body:
        (length,) = struct.unpack_from(">I", body)
        found.append(body[4 : 4 + length])
        body = body[4 + length :]
    return found
