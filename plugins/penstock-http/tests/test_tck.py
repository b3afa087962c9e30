"""The test kit over remote publishers that are read over HTTP, on the MockClock of the kit: in
memory, and over sockets of the system.
"""

import itertools
from collections.abc import AsyncIterator
from typing import Any, ClassVar

import trio
from _site_in_memory import Plugin as Served
from penstock_tck import PublisherVerification
from test_source import Plugin as Client

import penstock
from penstock import Service
from penstock.spi import Registry, TransportOptions, build_registry

COUNTER = itertools.count()
"""A name in memory can be used once."""

SERVING, READING = build_registry([Served()]), Client().registry
INSTALLED = build_registry()


async def _numbers(length: int, seconds: float = 0.0) -> AsyncIterator[int]:
    for number in range(length):
        if seconds:
            await trio.sleep(seconds)
        yield number


async def _numbers_and_an_error(length: int, error: Exception) -> AsyncIterator[int]:
    for number in range(length):
        yield number
    raise error


class OverHttp(PublisherVerification):
    """Each subscription is a subscribe and its polls."""

    verifies: ClassVar[str] = "http"
    multicast = True
    violations_reported = True
    synchronous_bound = 0
    watchdog_seconds = 30.0  # 5,000 polls are 3 s of the processor, and 5 s of a slow one
    waivers: ClassVar[dict[str, str]] = {
        "the_error_of_the_source_arrives_unwrapped": (
            "an exception is not sent over HTTP; the client gets PublisherFailed"
        ),
    }

    async def create_publisher(self, elements: int) -> Any:
        return await self._remote(lambda: _numbers(elements))

    async def create_faulty_publisher(self, elements: int, error: Exception) -> Any:
        return await self._remote(lambda: _numbers_and_an_error(elements, error))

    async def create_broken_publisher(self, error: Exception) -> Any:
        def broken() -> Any:
            raise error

        return await self._remote(broken)

    async def create_slow_publisher(self, elements: int, seconds: float) -> Any:
        return await self._remote(lambda: _numbers(elements, seconds))

    async def _remote(self, function: Any) -> Any:
        service = Service()
        service.publisher("numbers", serializer="json")(function)
        return await self.env.nursery.start(self._hold, service)

    async def _hold(self, service: Service, task_status: Any) -> None:
        name = f"kit{next(COUNTER)}"
        async with penstock.serve(
            service,
            f"memory-http://{name}",
            registry=SERVING,
            options=TransportOptions(extra={"http.hosts": name}),
            on_violation=lambda _error: None,
        ):
            await self._read(name, READING, task_status)

    async def _read(self, address: str, registry: Registry, task_status: Any) -> None:
        source = penstock.remote(
            f"http://{address}/p/numbers", serializer="json", registry=registry
        )
        task_status.started(
            source.publisher(self.env.nursery, on_violation=self.reported_violations.append)
        )
        await trio.sleep_forever()


class OverHttpSockets(OverHttp):
    """The same over TCP, where both sides are in this process: one can read at once what the other
    has sent.
    """

    verifies: ClassVar[str] = "http sockets"

    async def _hold(self, service: Service, task_status: Any) -> None:
        async with penstock.serve(
            service, "http://127.0.0.1:0", registry=INSTALLED, on_violation=lambda _error: None
        ) as server:
            address = server.addresses[0]
            await self._read(f"{address.host}:{address.port}", INSTALLED, task_status)
