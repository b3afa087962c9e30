"""A service as a program for a server: TLS, limits, logs, and a shutdown in good order. The
arguments are the URLs to listen at.
"""

import logging
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import penstock
from penstock.spi import Tls, TransportOptions

LIMITS = replace(
    penstock.Limits.untrusted(), max_connections=500, memory_budget=256 << 20, drain=10.0
)
HERE = Path(__file__).parent
service = penstock.Service()


@service.publisher("ticks/{symbol}", serializer="json")
async def ticks(symbol: str) -> AsyncIterator[dict[str, object]]:
    """Prices of a symbol, without end."""
    for price in range(100, sys.maxsize):
        yield {"symbol": symbol, "price": price}


if __name__ == "__main__":
    # To standard error.
    logging.basicConfig(format="%(levelname)s %(name)s: %(message)s", level=logging.INFO)
    tls = Tls(certificate=HERE / "server.pem", key=HERE / "server.key")  # read only for tls:// URLs
    sys.exit(penstock.run(service, *sys.argv[1:], limits=LIMITS, options=TransportOptions(tls=tls)))
