"""A service with a page of metrics beside it: http://127.0.0.1:9100/metrics. Ctrl-C ends it."""

from collections.abc import AsyncIterator
from contextlib import suppress

import penstock_metrics
import trio
from prometheus_client import start_http_server

import penstock

service = penstock.Service()


@service.publisher("quotes/{symbol}")
async def quotes(symbol: str) -> AsyncIterator[str]:
    price = 100
    while True:
        yield f"{symbol} {price}"
        price += 1
        await trio.sleep(0.1)


async def main(
    url: str = "tcp://127.0.0.1:7000",
    metrics_port: int = 9100,
    *,
    started: trio.Event | None = None,
) -> None:
    # A separate thread answers the scrapes; each one asks the run of trio for its numbers.
    pages, thread = start_http_server(metrics_port, addr="127.0.0.1")
    try:
        async with penstock.serve(service, url) as server:
            with penstock_metrics.collect(server):
                print(
                    f"serving {server.addresses[0]}, metrics at "
                    f"http://127.0.0.1:{pages.server_port}/metrics"
                )
                if started is not None:
                    started.set()
                await trio.sleep_forever()
    finally:
        pages.shutdown()
        pages.server_close()
        thread.join()


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        trio.run(main)
