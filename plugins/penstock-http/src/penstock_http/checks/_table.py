"""The table, and the way to a server."""

from typing import Final
from urllib.parse import urlsplit

import trio
from penstock_tck.wire import CheckContext, WireTable, join_tables

from penstock.spi import Connection, TransportOptions, Url
from penstock_http._client_connection import open_connection
from penstock_http.checks._delivery_rows import DELIVERY
from penstock_http.checks._element_rows import ELEMENTS
from penstock_http.checks._end_rows import ENDS
from penstock_http.checks._http_rows import HTTP
from penstock_http.checks._mapping_client import MappingClient
from penstock_http.checks._own_rows import OWN
from penstock_http.checks._subscribe_rows import SUBSCRIBES


async def _connect(url: Url, options: TransportOptions, nursery: trio.Nursery) -> Connection:
    return await open_connection(urlsplit(str(url)), None, options, nursery)


async def _refusal(context: CheckContext, _offer: str, name: str) -> str | None:
    client = MappingClient(context)
    answer = await client.ask(
        client.missing() if name == context.target.missing else client.publisher(name)
    )
    return f"{answer.status} {bytes(answer.body)!r}" if answer.is_error else None


TABLE: Final = WireTable(
    schemes=("http", "https"),
    rows=join_tables(SUBSCRIBES, ELEMENTS, DELIVERY, ENDS, HTTP, OWN),
    connect=_connect,
    refusal=_refusal,
)
