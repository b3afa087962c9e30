"""A program for the scene that kills it: ``order_server.py LOG PORT`` appends orders to a log on
disk and publishes it. It prints its port, then the number of each order whose append has returned.
"""

import sys

import trio

import penstock


async def main(path: str, port: int) -> None:
    """Append and publish until it is killed."""
    retention = penstock.Retention(max_count=1_000_000)
    async with penstock.DiskLog(path, retention=retention) as log:
        service = penstock.Service()
        service.publish("orders", log)
        async with penstock.serve(service, f"tcp://127.0.0.1:{port}") as server:
            print(server.addresses[0].port, flush=True)
            while True:
                number = log.latest()["0"]
                await log.append([b"%d" % number])
                print(number, flush=True)
                await trio.sleep(0.002)


if __name__ == "__main__":
    trio.run(main, sys.argv[1], int(sys.argv[2]))
