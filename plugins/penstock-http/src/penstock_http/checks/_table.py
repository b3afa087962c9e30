"""The table, and the way to a server."""

from typing import Final
from urllib.parse import urlsplit

import trio
from penstock_tck.wire import WireTable, join_tables

from penstock.plugins import Connection, TransportOptions, Url
from penstock_http._client_connection import open_connection
from penstock_http.checks._delivery_rows import DELIVERY
from penstock_http.checks._element_rows import ELEMENTS
from penstock_http.checks._end_rows import ENDS
from penstock_http.checks._http_rows import HTTP
from penstock_http.checks._own_rows import OWN
from penstock_http.checks._subscribe_rows import SUBSCRIBES


async def _connect(url: Url, options: TransportOptions, nursery: trio.Nursery) -> Connection:
    return await open_connection(urlsplit(str(url)), None, options, nursery)


TABLE: Final = WireTable(schemes=("http", "https"), rows=join_tables(SUBSCRIBES, ELEMENTS, DELIVERY, ENDS, HTTP, OWN), connect=_connect)
