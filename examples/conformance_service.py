"""A service with all that `penstock tck` needs, served at the given URLs (rsio+tcp://…,
http://…). Without URLs it checks itself.
"""

import sys
from collections.abc import AsyncIterator

import trio
from penstock_tck.wire import PRIVATE_TEXT, check_target, large_element, summary

import penstock
from penstock.spi import PeerIdentity

URLS = sys.argv[1:] or ["rsio+memory://streams", "reactivesocket+memory://requests"]
servers: list[penstock.Server] = []
# Of ReactiveSocket alone.
service = penstock.Service(setup=None if "http" in str(URLS) else lambda data: data != b"refuse me")
service.publish("three", [b"one", b"two", b"three"])
service.publish("one", [b"one"])
service.publish("empty", ())
service.publish("large", [large_element(number) for number in range(5)])
service.publish("blank", [b""])
service.publish("slow", penstock.timer(0.25).map(lambda _: b"late"))


@service.publisher("numbers")
@service.publisher("fixed", element_size=8)
async def numbers() -> AsyncIterator[bytes]:
    while True:
        yield b"a number"


@service.publisher("failing")
async def failing() -> AsyncIterator[bytes]:
    yield b"one"
    raise penstock.PublicError("failed on purpose")


@service.publisher("private")
async def private() -> AsyncIterator[bytes]:
    yield b"one"
    raise ValueError(PRIVATE_TEXT)


@service.publisher("relay")
async def relay(identity: PeerIdentity) -> AsyncIterator[bytes]:
    if not servers:  # `penstock serve` runs the server: say that it has no such publisher
        raise penstock.NotAvailable
    (client,) = (peer for server in servers for peer in server.peers if peer.identity is identity)
    async with client.subscribe("tck", demand=4) as stream:
        async for element in stream:
            yield element


@service.request("echo")
async def echo(payload: bytes) -> bytes:
    return payload


async def main() -> None:
    async with penstock.serve(service, *URLS, on_violation=lambda _: None) as server:
        servers.append(server)
        if sys.argv[1:]:
            await trio.sleep_forever()
        for url in URLS:
            print(url, summary(await check_target(url)))


if __name__ == "__main__":
    trio.run(main)
