"""A program between a broker and its subscribers: it publishes a log at ``tcp://``.

``python -m campaigns.brokers._bridge ENGINE URL PORT``
"""

import sys

import trio

from campaigns.brokers._engines import ENGINES
from penstock import Service, serve


async def main(engine: str, url: str, port: str) -> None:
    """Serve until it is killed."""
    log = ENGINES[engine].reader(url)
    service = Service(lifespan=lambda: log)
    service.publish("orders", log)
    async with serve(service, f"tcp://127.0.0.1:{port}"):
        print("ready", flush=True)
        await trio.sleep_forever()


if __name__ == "__main__":
    trio.run(main, *sys.argv[1:])
