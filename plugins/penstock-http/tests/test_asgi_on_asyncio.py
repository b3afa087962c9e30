"""The mapping as an ASGI application on asyncio, with a web server of the test in the same loop."""

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest
from _web_server import Lifespan, WebServer, ask, elements, subscribe
from penstock_http import AsgiApp

import penstock
from penstock import PublicError, aio
from penstock.api import UsageError
from penstock.spi import TransportOptions


class Streams:
    """A service, its application, and what its generators have done."""

    def __init__(self, **options: Any) -> None:
        service = self.service = aio.Service()
        self.app = AsgiApp(service, **options)
        self.open = 0
        self.made = 0
        self.waits: asyncio.Event | None = None
        """Set when `endless` waits."""
        self.ended: asyncio.Event | None = None
        """Set when `endless` has ended."""

        @service.publisher("numbers/{count}", serializer="json")
        async def numbers(count: int) -> AsyncIterator[int]:
            for number in range(count):
                await asyncio.sleep(0)
                yield number

        @service.publisher("failing", serializer="json")
        async def failing() -> AsyncIterator[int]:
            yield 0
            raise PublicError("out of stock")

        @service.publisher("endless", serializer="json")
        async def endless() -> AsyncIterator[int]:
            self.open += 1
            try:
                yield 0
                if self.waits is not None:
                    self.waits.set()
                await asyncio.Event().wait()
            finally:
                self.open -= 1
                if self.ended is not None:
                    self.ended.set()

        @service.publisher("busy", serializer="json")
        async def busy() -> AsyncIterator[int]:
            while True:
                self.made += 1
                yield self.made


def run(function: Callable[[Streams], Awaitable[None]], **options: Any) -> Streams:
    """Run `function` in a loop of asyncio, for 30 s at most."""
    streams = Streams(**options)

    async def main() -> None:
        streams.waits, streams.ended = asyncio.Event(), asyncio.Event()
        async with asyncio.timeout(30):
            await function(streams)

    asyncio.run(main())
    return streams


def test_the_life_of_a_stream() -> None:
    """The first request begins to serve. A batch, the completion, a failure, events."""

    async def main(streams: Streams) -> None:
        app = streams.app
        path = await subscribe(app, "numbers/3", 2)
        assert elements(await ask(app, path))[0] == b"0"
        await ask(app, f"{path}?request=5")
        path = await subscribe(app, "failing", 5)
        assert (await ask(app, path)).body == b"0"
        assert (await ask(app, path)).headers["x-rsio-error"] == "true"
        path = await subscribe(app, "numbers/3", 4)
        events = await ask(app, f"{path}/events?text=1", method="GET")
        assert events.body.endswith(b"id: 2\ndata: 2\n\nevent: rsio-complete\ndata:\n\n")
        assert (await ask(app, "/healthz", method="HEAD")).headers["content-length"] == "3"
        assert (await ask(app, path, body=(bytes(70_000),))).status == 413
        assert (await ask(app, path, *[(f"x{number}", "") for number in range(101)])).status == 431

    run(main)


def test_the_end_of_the_loop_ends_what_the_first_request_has_begun(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """asyncio.run cancels its tasks, and no generator is left. The log has no failure."""

    async def main(streams: Streams) -> None:
        path = await subscribe(streams.app, "endless", 5)
        assert (await ask(streams.app, path)).body == b"0"
        assert streams.open == 1

    streams = Streams()
    for _ in range(2):
        asyncio.run(main(streams))
        assert streams.open == 0
        assert not caplog.messages


def test_a_lifespan_serves_and_drains() -> None:
    """A generator has ended before the shutdown is complete; then nothing is served."""

    async def main(streams: Streams) -> None:
        class Asking(Lifespan):
            async def send(self, message: Any) -> None:
                await super().send(message)
                if message["type"] == "lifespan.startup.complete":
                    path = await subscribe(streams.app, "endless", 5)
                    assert (await ask(streams.app, path)).body == b"0"
                    assert streams.open == 1
                else:
                    assert streams.open == 0
                    assert (await ask(streams.app, path_of_numbers)).status == 503

        path_of_numbers = "/p/numbers/3"
        sent = await Asking("startup", "shutdown").run(streams.app)
        assert [message["type"] for message in sent] == [
            "lifespan.startup.complete",
            "lifespan.shutdown.complete",
        ]

    run(main)


def test_serving_gives_the_server() -> None:
    """For statistics and metrics."""

    async def main(streams: Streams) -> None:
        async with streams.app.serving() as server:
            assert isinstance(server, aio.Server)
            await subscribe(streams.app, "numbers/3")
            assert server.statistics().refused == {}
        assert (await ask(streams.app, "/p/numbers/3")).status == 503

    run(main)


@pytest.mark.parametrize("kind", ["poll", "events"])
@pytest.mark.parametrize("end", ["disconnect", "cancel"])
def test_a_client_that_goes_ends_its_request(kind: str, end: str) -> None:
    """It disconnects, or the web server cancels the task of the request. The call returns, and the
    elements are kept for the next one.
    """

    async def main(streams: Streams) -> None:
        path = await subscribe(streams.app, "endless", 5)
        if kind == "poll":
            assert (await ask(streams.app, path)).body == b"0"
        request = f"{path}/events" if kind == "events" else path
        client = WebServer(request, method="GET" if kind == "events" else "PUT")
        task = asyncio.create_task(client.run(streams.app))
        assert streams.waits is not None
        await streams.waits.wait()
        for _ in range(20):  # until the request waits
            await asyncio.sleep(0)
        assert not task.done()
        if end == "cancel":
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        else:
            client.disconnects.set()
            await task
        assert not client.ended.is_set()
        assert (await ask(streams.app, f"{path}/cancel", method="POST")).status == 200
        assert streams.ended is not None
        await streams.ended.wait()

    run(main)


def test_a_busy_stream_ends_when_its_client_goes() -> None:
    """The web server drops what is sent to a client that has gone, and a second call of receive
    would never return.
    """

    async def main(streams: Streams) -> None:
        class Leaving(WebServer):
            async def send(self, message: Any) -> None:
                if self.disconnects.is_set():
                    return
                await super().send(message)
                if len(self.raw) > 10_000:
                    self.disconnects.set()

            async def receive(self) -> Any:
                if self.disconnects.is_set():
                    await asyncio.Event().wait()
                return await super().receive()

        path = await subscribe(streams.app, "busy", 1 << 62)
        await Leaving(f"{path}/events?text=1", method="GET").run(streams.app)
        assert streams.made < 100_000

    run(main)


def test_a_write_that_waits_holds_the_publisher_back() -> None:
    """The web server takes nothing more, so the bytes that are kept for a client are bounded."""

    async def main(streams: Streams) -> None:
        stalls = asyncio.Event()

        class Stalling(WebServer):
            async def send(self, message: Any) -> None:
                await super().send(message)
                if len(self.raw) > 10_000:
                    stalls.set()
                    await asyncio.Event().wait()

        path = await subscribe(streams.app, "busy", 1 << 62)
        client = Stalling(f"{path}/events?text=1", method="GET")
        task = asyncio.create_task(client.run(streams.app))
        await stalls.wait()
        before = -1
        while before != streams.made:
            before = streams.made
            for _ in range(100):
                await asyncio.sleep(0)
        assert streams.made < 10_000
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    run(main)


def test_a_service_for_trio_is_refused(caplog: pytest.LogCaptureFixture) -> None:
    """Each client gets 500, the log one line; a lifespan fails with the text."""

    async def main() -> None:
        app = AsgiApp(penstock.Service())
        for _ in range(2):
            assert (await ask(app, "/p/numbers/3")).status == 500
        (line,) = caplog.messages
        assert "Make a penstock.aio.Service()" in line
        with pytest.raises(UsageError, match=r"hypercorn --worker-class trio"):
            async with app.serving():
                pass
        (sent,) = await Lifespan("startup").run(AsgiApp(penstock.Service()))
        assert sent["type"] == "lifespan.startup.failed"
        assert "Make a penstock.aio.Service()" in sent["message"]

    asyncio.run(main())


def test_a_wrong_option_is_told_at_the_first_request(caplog: pytest.LogCaptureFixture) -> None:
    """Once, in the log."""

    async def main(streams: Streams) -> None:
        for _ in range(2):
            assert (await ask(streams.app, "/p/numbers/3")).status == 500
        (line,) = caplog.messages
        assert "http.hold" in line

    run(main, options=TransportOptions(extra={"http.hold": "long"}))


def test_a_second_loop_is_refused_while_the_first_runs(caplog: pytest.LogCaptureFixture) -> None:
    """Its clients get 500, the log says what to do. The first serves on."""
    statuses = list[int]()

    async def main(streams: Streams) -> None:
        async def second() -> None:
            statuses.append((await ask(streams.app, "/p/numbers/3")).status)

        assert (await ask(streams.app, "/p/numbers/3")).status == 201
        thread = threading.Thread(target=lambda: asyncio.run(second()))
        thread.start()
        await asyncio.to_thread(thread.join)
        assert (await ask(streams.app, "/p/numbers/3")).status == 201
        (line,) = caplog.messages
        assert "serves in another loop, since its first request" in line

    run(main)
    assert statuses == [500]


def test_two_applications_serve_side_by_side() -> None:
    """Each has its own server and streams, in one guest run of trio."""

    async def main(streams: Streams) -> None:
        other = Streams()
        path = await subscribe(streams.app, "numbers/3", 3)
        assert (await ask(other.app, path)).status == 404
        path = await subscribe(other.app, "numbers/3", 3)
        assert (await ask(other.app, path)).status == 200

    run(main)


def test_the_framework_names_the_principal() -> None:
    """With a plain or an async function of asyncio, in the task of the request."""
    asked = list[Any]()

    def authorize(principal: Any, name: Any) -> bool:
        asked.append(principal)
        return True

    async def principal(scope: Any) -> Any:
        await asyncio.sleep(0)
        return scope["user"]

    async def main() -> None:
        for function in (principal, lambda scope: scope["user"]):
            service = aio.Service(authorize=authorize)
            service.publish("one", [1], serializer="json")
            app = AsgiApp(service, principal=function)
            assert (await ask(app, "/p/one", user="ada")).status == 201
        assert asked == ["ada", "ada"]

    asyncio.run(main())


def test_an_application_without_a_loop_says_so() -> None:
    """Neither loop runs."""
    with pytest.raises(UsageError, match="neither runs"):
        AsgiApp(aio.Service()).serving().__aenter__().send(None)
