"""Opens a connection on asyncio: TCP, TLS or Unix, with one deadline for all addresses and the handshake."""

import asyncio
import socket
import ssl

from penstock.aio._connection import Connection, lost_before_it_began
from penstock.api import ConnectionLost
from penstock.endpoint import EndpointSettings
from penstock.plugins import Tls, tls_failure


async def open_connection(settings: EndpointSettings) -> Connection:
    """Return a new connection. Raises ConnectionLost if no server answers in time, and UsageError for bad certificates."""
    loop = asyncio.get_running_loop()
    url = settings.url.address
    try:
        async with asyncio.timeout(settings.limits.handshake_timeout):
            return await _connected(settings, Connection(settings, loop), loop)
    except TimeoutError:
        raise lost_before_it_began(settings) from None
    except ssl.SSLError as error:
        raise ConnectionLost(f"the TLS handshake with {url} failed: {tls_failure(error)}") from error
    except (socket.gaierror, UnicodeError) as error:
        raise ConnectionLost(f"the name {url.host!r} of {url} cannot be resolved: {error}. Check it, or write the address") from error
    except OSError as error:
        raise ConnectionLost(f"no server answers at {url}: {error}. Is the server running, at this host and port?") from error


async def _connected(settings: EndpointSettings, connection: Connection, loop: asyncio.AbstractEventLoop) -> Connection:
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
    return connection
