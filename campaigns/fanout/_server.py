"""The server process of the campaign: it publishes a topic, on command.

Each line of its standard input is a command. It answers each with a line of JSON:

``wait COUNT``         wait for COUNT subscribers
``publish COUNT HOW``  publish COUNT elements: `one` at a time, or as a list of `many`
``alone``              wait until all subscribers have left
``measure``            the seconds of processor time so far, and the KiB in memory
``bare``               the seconds of processor time of one write of an element to a socket
"""

import json
import resource
import socket
import sys
import time
from pathlib import Path
from typing import Final

import trio

import penstock
from penstock import Limits, Topic
from penstock.runtime import tune_collector

SIZE: Final = 64
"""Bytes of an element, a quote of a price perhaps."""

MANY: Final = 100
"""Elements of a list."""


async def publish(topic: Topic[bytes], count: int, how: str) -> None:
    """Publish `count` elements."""
    elements = [number.to_bytes(SIZE, "big") for number in range(count)]
    if how == "one":
        for element in elements:
            await topic.publish(element)
    else:
        for start in range(0, count, MANY):
            await topic.publish_many(elements[start : start + MANY])


def measured() -> dict[str, float]:
    """Return what this process has used until now."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    resident = status.partition("VmRSS:")[2].split()[0]
    return {"seconds": time.process_time(), "resident": int(resident)}


def bare_write() -> float:
    """Return the seconds of one write of an element over TCP."""
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.create_connection(listener.getsockname()) as one,
    ):
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # as penstock sets it
        other, _ = listener.accept()
        with other:
            element, seconds = bytes(SIZE), 0.0
            for _ in range(100):
                began = time.process_time()
                for _ in range(100):
                    one.send(element)
                seconds += time.process_time() - began
                other.recv(1 << 20)
    return seconds / 10_000


async def serve(scheme: str) -> None:
    """Serve a topic, and do what standard input says."""
    topic, service = Topic[bytes](), penstock.Service()
    service.publish("topic", topic)
    # All subscribers of this campaign come at once, from few addresses.
    # A short keepalive, so that subscribers that wait are pinged within the campaign.
    limits = Limits(
        max_connections=20_000,
        max_connections_per_address=20_000,
        max_pending_handshakes=2_000,
        keepalive=2.0,
    )
    async with penstock.serve(service, f"{scheme}://127.0.0.1:0", limits=limits) as server:
        tune_collector()  # as penstock.run and `penstock serve` do
        answer(str(server.addresses[0]))
        async for line in trio.wrap_file(sys.stdin):
            match line.split():
                case ["wait", count]:
                    await topic.wait_subscribers(at_least=int(count))
                    answer(count)
                case ["publish", count, how]:
                    await publish(topic, int(count), how)
                    answer(count)
                case ["alone"]:
                    await topic.wait_alone()
                    answer("0")
                case ["measure"]:
                    answer(json.dumps(measured()))
                case ["bare"]:
                    answer(json.dumps(bare_write()))


def answer(text: str) -> None:
    """Write a line."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    trio.run(serve, sys.argv[1])
