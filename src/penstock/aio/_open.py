"""Opens a connection on asyncio: TCP, TLS or Unix, with one deadline for all addresses
and the handshake.
"""

import asyncio

from penstock.aio._connection import AsyncioConnection
from penstock.client import EndpointSettings, late
from penstock.spi import Tls, unreachable


async def open_connection(settings: EndpointSettings) -> AsyncioConnection:
    """Return a new connection. Raises ConnectionLost if no server answers in time, and
    UsageError for bad certificates.
    """
    loop = asyncio.get_running_loop()
    url = settings.url.address
    try:
        async with asyncio.timeout(settings.limits.handshake_timeout):
            return await _connected(settings, AsyncioConnection(settings, loop), loop)
    except TimeoutError:
        raise late(settings) from None
    except (OSError, UnicodeError) as error:
        raise unreachable(url, error) from error


async def _connected(
    settings: EndpointSettings, connection: AsyncioConnection, loop: asyncio.AbstractEventLoop
) -> AsyncioConnection:
    url, options = settings.url, settings.options
    # Without `happy_eyeballs_delay`: if it is cancelled, asyncio leaves a task of it behind.
    host, port = url.host or "", url.port or 0
    if url.transport == "unix":
        await loop.create_unix_connection(lambda: connection, url.file())
    elif url.transport == "tcp":
        await loop.create_connection(lambda: connection, host, port)
    else:
        tls = options.tls or Tls()
        await loop.create_connection(
            lambda: connection,
            host,
            port,
            ssl=tls.client_context(options.protocols or ()),
            server_hostname=tls.server_name or host,
            ssl_handshake_timeout=options.handshake_timeout,
            ssl_shutdown_timeout=options.close_timeout,
        )
    await connection.check_made()
    return connection
