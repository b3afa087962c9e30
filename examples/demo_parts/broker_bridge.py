"""A program for the scene with a broker: ``broker_bridge.py URL PORT`` publishes a log that a server
of NATS keeps. It prints its port.
"""

import sys

import trio
from penstock_nats import JetStreamLog

import penstock


async def main(url: str, port: int) -> None:
    """Publish until it is killed."""
    log = JetStreamLog(url, "orders", read_only=True, timeout=50)
    service = penstock.Service(lifespan=lambda: log)
    service.publish("orders", log)
    async with penstock.serve(service, f"tcp://127.0.0.1:{port}") as server:
        print(server.addresses[0].port, flush=True)
        await trio.sleep_forever()


if __name__ == "__main__":
    trio.run(main, sys.argv[1], int(sys.argv[2]))
