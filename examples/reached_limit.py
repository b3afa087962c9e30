"""A limit: this server serves one stream for each connection, refuses a second one,
and the first one goes on.
"""

from dataclasses import replace

import trio

import penstock

service = penstock.Service()
service.publish("numbers", range(100), serializer="json")


async def main() -> None:
    limits = replace(penstock.Limits(), max_subscriptions=1)
    async with (
        penstock.serve(service, "memory://numbers", limits=limits),
        penstock.connect("memory://numbers") as peer,
        peer.subscribe("numbers", serializer="json", demand=1) as first,
    ):
        print("first stream: ", await anext(first))
        try:
            async with peer.subscribe("numbers", serializer="json") as second:
                await anext(second)
        except penstock.Rejected as refusal:
            print("second stream:", refusal)
        print("first stream: ", await anext(first))

    try:
        replace(limits, max_subscriptions=0)
    except penstock.UsageError as mistake:
        print("bad value:    ", mistake)


if __name__ == "__main__":
    trio.run(main)
