"""A service as a program for a server: TLS, limits, logs, and a shutdown in good order. The arguments are the URLs to listen at."""

import logging
import signal
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import trio

import penstock
from penstock.plugins import Tls, TransportOptions

LIMITS = replace(penstock.Limits.untrusted(), max_connections=500, memory_budget=256 << 20, drain=10.0)
HERE = Path(__file__).parent
log = logging.getLogger("exchange")
service = penstock.Service()


@service.publisher("ticks/{symbol}", serializer="json")
async def ticks(symbol: str) -> AsyncIterator[dict[str, object]]:
    """Prices of a symbol, without end."""
    for price in range(100, sys.maxsize):
        yield {"symbol": symbol, "price": price}


def report(fault: BaseException) -> None:
    """Log a fault of a publisher. The peer gets no detail of it."""
    log.error("a publisher failed", exc_info=fault)


async def main() -> None:
    logging.basicConfig(format="%(levelname)s %(name)s: %(message)s", level=logging.INFO)  # to standard error
    tls = Tls(certificate=HERE / "server.pem", key=HERE / "server.key")  # read only for tls:// URLs
    with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async with penstock.serve(service, *sys.argv[1:], limits=LIMITS, options=TransportOptions(tls=tls), on_violation=report) as server:
            for address in server.addresses:
                log.info("serving at %s", address)
            number = await anext(signals)
            log.info("%s: shutting down", signal.Signals(number).name)
    log.info("stopped")


if __name__ == "__main__":
    trio.run(main)
