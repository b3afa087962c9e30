"""The mapping as an ASGI application on trio, with a web server of the test on virtual time.
`test_asgi_on_asyncio` and `test_asgi_servers` have the rest.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
import trio.testing
from _site_in_memory import Answer, service
from _web_server import Lifespan, WebServer, ask, elements, subscribe
from penstock_http import AsgiApp
from penstock_http._asgi import TEXTS
from penstock_http._asgi_answer import path_of

import penstock
from penstock import Limits, Rejected, Service, aio
from penstock.api import UsageError
from penstock.spi import TransportOptions

Clock = trio.testing.MockClock


@asynccontextmanager
async def serving(**extra: object) -> AsyncIterator[AsgiApp]:
    options = TransportOptions(extra={f"http.{name}": value for name, value in extra.items()})
    app = AsgiApp(service(), options=options, limits=Limits(drain=5))
    async with app.serving() as server:
        assert isinstance(server, penstock.Server)
        yield app


async def test_the_life_of_a_stream(autojump_clock: Clock) -> None:
    """Subscribe, a batch, 204, the completion, a failure, and a cancel;
    the web server adds the date.
    """
    async with serving() as app:
        path = await subscribe(app, "numbers/3", 2)
        batch = await ask(app, path, body=(b"any", b"body"))
        assert elements(batch) == [b"0", b"1"]
        assert batch.headers["cache-control"] == "no-store"
        assert "date" not in batch.headers
        assert (await ask(app, path)).status == 204
        assert (await ask(app, f"{path}?request=5")).body == b"2"
        assert (await ask(app, path)).status == 410
        path = await subscribe(app, "failing", 5)
        assert (await ask(app, path)).body == b"0"
        assert (await ask(app, path)).headers["x-rsio-error"] == "true"
        path = await subscribe(app, "large", 1)
        assert (await ask(app, f"{path}/cancel", method="POST")).status == 200
        assert (await ask(app, "/healthz", method="HEAD")).headers["content-length"] == "3"
        assert (await ask(app, path, body=(bytes(70_000),))).status == 413
        assert (await ask(app, path, *[(f"x{number}", "") for number in range(101)])).status == 431


async def test_answers_grow_and_polls_wait(autojump_clock: Clock) -> None:
    """A streamed batch, events, and a poll that is answered after the time of its element."""
    async with serving() as app:
        began = trio.current_time()
        assert (await ask(app, await subscribe(app, "slow/10", 1))).body == b"0"
        assert trio.current_time() - began == pytest.approx(10)
        streamed = await ask(app, await subscribe(app, "slow/3", 3), ("x-rsio-delivery", "stream"))
        assert elements(streamed) == [b"0", b"1", b"2"]
        events = await ask(app, f"{await subscribe(app, 'slow/3', 4)}/events?text=1", method="GET")
        assert events.body.endswith(b"id: 2\ndata: 2\n\nevent: rsio-complete\ndata:\n\n")


async def test_a_client_that_goes_loses_nothing_of_what_it_waits_for(autojump_clock: Clock) -> None:
    """While a poll waits, and in the middle of a streamed batch."""
    async with serving() as app, trio.open_nursery() as nursery:
        for headers in ((), (("x-rsio-delivery", "stream"),)):
            path = await subscribe(app, "slow/10", 3)
            client = WebServer(path, *headers)
            nursery.start_soon(client.run, app)
            await trio.sleep(15 if headers else 5)
            client.disconnects.set()
            await trio.testing.wait_all_tasks_blocked()
            again = await ask(app, path)
            assert (elements(again)[0], again.headers["x-rsio-position"]) == (b"0", "0")


async def test_a_client_that_goes_ends_its_stream_if_that_is_wanted(autojump_clock: Clock) -> None:
    """With ``http.lost=end``: events and a streamed batch end it at once, and a poll does not. A
    client that has asked again over another connection has not gone.
    """
    ended: list[int] = []
    noting = Service()

    @noting.publisher("slow", serializer="json")
    async def slow() -> AsyncIterator[int]:
        try:
            for number in range(1_000):
                yield number
                await trio.sleep(10)
        finally:
            ended.append(number)

    app = AsgiApp(noting, options=TransportOptions(extra={"http.lost": "end"}))

    def leaving(path: str, kind: str) -> WebServer:
        if kind == "events":
            return WebServer(f"{path}/events?text=1", method="GET")
        headers = (("x-rsio-delivery", "stream"),) if kind == "streamed" else ()
        return WebServer(path, *headers)

    async with app.serving(), trio.open_nursery() as nursery:
        for kind in ("events", "streamed", "poll"):
            path = await subscribe(app, "slow", 500)
            client = leaving(path, kind)
            if kind == "poll":
                await ask(app, path)  # the first element is there at once
            nursery.start_soon(client.run, app)
            await trio.sleep(5)
            client.disconnects.set()
            await trio.testing.wait_all_tasks_blocked()
            assert len(ended) == (0 if kind == "poll" else 1)
            later = await ask(app, path)
            assert (later.status, b"http.lost=end" in later.body) == (
                (200, False) if kind == "poll" else (404, True)
            )
            ended.clear()
        path = await subscribe(app, "slow", 500)
        first, second = leaving(path, "events"), leaving(path, "events")
        nursery.start_soon(first.run, app)
        await trio.sleep(5)
        nursery.start_soon(second.run, app)
        await trio.sleep(1)
        first.disconnects.set()
        await trio.sleep(20)
        assert not ended
        assert b"data: 2" in second.raw
        second.disconnects.set()
        await trio.testing.wait_all_tasks_blocked()
        assert len(ended) == 1


async def test_a_shutdown_answers_what_waits(autojump_clock: Clock) -> None:
    """Polls get 503. Then nothing is served any more."""
    async with trio.open_nursery() as nursery:
        async with serving() as app:
            poll = WebServer(await subscribe(app, "slow/1000", 1))
            nursery.start_soon(poll.run, app)
            await trio.testing.wait_all_tasks_blocked()
            began = trio.current_time()
        assert trio.current_time() - began < 1
        await poll.ended.wait()
        assert (Answer(poll.raw).status, Answer(poll.raw).headers["x-rsio-error"]) == (503, "true")
        assert (await ask(app, "/p/numbers/3")).status == 503


async def test_pages_and_hosts_are_examined(autojump_clock: Clock) -> None:
    """The origin is compared with the scheme and the Host of the request."""
    async with serving(origins="https://app.example") as app:
        for origin, scheme, status in (
            ("https://evil.example", "http", 403),
            ("http://localhost", "http", 201),
            ("https://localhost", "https", 201),
            ("https://app.example", "http", 201),
        ):
            assert (
                await ask(app, "/p/numbers/3", ("origin", origin), scheme=scheme)
            ).status == status
        rebound = WebServer("/p/numbers/3", headers=[(b"host", b"evil.example")])
        assert (await rebound.run(app)).status == 421


async def test_a_lifespan_serves() -> None:
    """From its startup to its shutdown; then nothing is served any more."""
    app = AsgiApp(service())
    answers = list[Answer]()

    class Asking(Lifespan):
        async def send(self, message: Any) -> None:
            await super().send(message)
            answers.append(await ask(app, "/p/numbers/3"))

    sent = await Asking("startup", "shutdown").run(app)
    assert [message["type"] for message in sent] == [
        "lifespan.startup.complete",
        "lifespan.shutdown.complete",
    ]
    assert [each.status for each in answers] == [201, 503]
    assert await Lifespan("startup", "shutdown").run(app) == sent, "it serves again"


async def test_a_lifespan_that_fails_says_why() -> None:
    """The web server shows the text, and ends."""
    app = AsgiApp(service(), options=TransportOptions(extra={"http.hold": "long"}))
    (sent,) = await Lifespan("startup").run(app)
    assert sent["type"] == "lifespan.startup.failed"
    assert "http.hold" in sent["message"]


def test_the_first_request_begins_to_serve() -> None:
    """It serves to the end of the run, which ends its streams. A later run begins anew."""
    app, ended = AsgiApp(endless := Service()), list[str]()

    @endless.publisher("endless", serializer="json")
    async def numbers() -> AsyncIterator[int]:
        try:
            await trio.sleep_forever()
            yield 0
        finally:
            ended.append("endless")

    async def main() -> None:
        paths = [await subscribe(app, "endless", 1) for _ in range(3)]
        async with trio.open_nursery() as nursery:
            for path in paths:
                nursery.start_soon(ask, app, path)
            await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
        await trio.testing.wait_all_tasks_blocked()
        assert len(ended) == before

    for runs in (1, 2):
        before = len(ended)
        trio.run(main)
        assert len(ended) == 3 * runs


async def test_a_service_for_the_other_loop_is_refused(caplog: pytest.LogCaptureFixture) -> None:
    """Each client gets 500, the log one line, and serving() raises."""
    app = AsgiApp(aio.Service())
    for _ in range(2):
        assert (await ask(app, "/p/numbers/3")).status == 500
    (line,) = caplog.messages
    assert "penstock.aio.Service" in line
    assert "Make a penstock.Service()" in line
    with pytest.raises(UsageError, match=r"Make a penstock\.Service\(\)"):
        async with app.serving():
            pass
    (sent,) = await Lifespan("startup").run(AsgiApp(aio.Service()))
    assert "Make a penstock.Service()" in sent["message"]


async def test_the_texts_of_failures_are_bounded(caplog: pytest.LogCaptureFixture) -> None:
    """Each is logged once, also if it differs at each start; the oldest ones are forgotten."""
    app = AsgiApp(service())
    for number in range(1_000):
        for _ in range(2):
            app._log_once(UsageError(f"start {number} failed"))
    assert len(caplog.messages) == 1_000
    assert len(app._logged) == TEXTS


async def test_wrong_arguments_are_refused() -> None:
    """At the call, and a second block."""
    with pytest.raises(UsageError, match="give a penstock"):
        AsgiApp("asgi://streams")  # type: ignore[arg-type]  # that is tested
    with pytest.raises(UsageError, match="scope of ASGI"):
        AsgiApp(service(), principal="me")  # type: ignore[arg-type]  # that is tested
    async with serving() as app:
        with pytest.raises(UsageError, match="serves already, since the start of its lifespan"):
            async with app.serving():
                pass
    begun = AsgiApp(service())
    await ask(begun, "/healthz")
    with pytest.raises(UsageError, match="since its first request"):
        async with begun.serving():
            pass


async def test_the_framework_names_the_principal(autojump_clock: Clock) -> None:
    """Authorize gets what the function returns for the scope; authenticate sees it, and decides.
    A refusal is 401 or 429, another exception goes to the web server.
    """
    asked, seen = list[tuple[Any, Any]](), list[Any]()

    def authorize(principal: Any, name: Any) -> bool:
        asked.append((principal, name))
        return principal == "ada"

    def principal(scope: Any) -> Any:
        if scope["user"] == "busy":
            raise Rejected("later", temporary=True)
        if scope["user"] == "nobody":
            raise Rejected("log in first")
        return scope["user"]

    async def slowly(scope: Any) -> Any:
        await trio.sleep(1)
        return principal(scope)

    def authenticate(scheme: str, data: bytes, peer: Any) -> Any:
        seen.append(peer.principal)
        return peer.principal.upper()

    for function in (principal, slowly):
        app = AsgiApp(numbered := Service(authorize=authorize), principal=function)

        @numbered.publisher("one", serializer="json")
        async def one() -> AsyncIterator[int]:
            yield 1

        for user, status in (("ada", 201), ("eve", 404), ("nobody", 401), ("busy", 429)):
            assert (await ask(app, "/p/one?request=1", user=user)).status == status
        assert asked == [("ada", "one"), ("eve", "one")]
        asked.clear()
        with pytest.raises(KeyError, match="user"):
            await ask(app, "/p/one?request=1")
    examined = Service(authorize=lambda found, _name: found == "ADA", authenticate=authenticate)
    examined.publisher("one", serializer="json")(one)
    app = AsgiApp(examined, principal=principal)
    assert (await ask(app, "/p/one?request=1", user="ada")).status == 201
    assert seen == ["ada"]


async def test_a_stream_belongs_to_the_user_of_its_request(autojump_clock: Clock) -> None:
    """Another user of the framework, or none, does not find it: no read, no demand, no cancel."""

    def principal(scope: Any) -> Any:
        return scope.get("user")

    def authenticate(scheme: str, data: bytes, peer: Any) -> Any:
        return peer.principal or "guest"

    for owned in (Service(), Service(authenticate=authenticate)):
        app = AsgiApp(owned, principal=principal)

        @owned.publisher("two", serializer="json")
        async def two() -> AsyncIterator[int]:
            yield 1
            yield 2

        created = await ask(app, "/p/two", user="ada")
        path = "/" + created.headers["location"].replace("../", "")
        for other in ({"user": "eve"}, {}):
            assert (await ask(app, f"{path}?request=1", **other)).status == 404
            assert (await ask(app, f"{path}/cancel", method="POST", **other)).status == 404
        assert (await ask(app, f"{path}?request=2", user="ada")).status == 200


async def test_a_busy_stream_ends_when_its_client_goes(autojump_clock: Clock) -> None:
    """The stream never waits, and the web server drops what is sent to a client that has gone.
    `receive` is not called again after it has told so.
    """
    busy, made = Service(), 0

    @busy.publisher("busy", serializer="json")
    async def numbers() -> AsyncIterator[int]:
        nonlocal made
        while True:
            made += 1
            yield made

    class Leaving(WebServer):
        async def send(self, message: Any) -> None:
            await super().send(message)
            await trio.sleep(1)  # meanwhile the publisher makes all that may be kept
            if len(self.raw) > 10_000:
                self.disconnects.set()

        async def receive(self) -> Any:
            assert not self.disconnects.is_set()
            return await super().receive()

    app = AsgiApp(busy)
    path = await subscribe(app, "busy", 1 << 62)
    await Leaving(f"{path}/events?text=1", method="GET").run(app)
    assert made < 10_000


async def test_a_client_that_does_not_read_is_left(autojump_clock: Clock) -> None:
    """After `Limits.write_stall`, if the web server waits for it. The elements are kept. One that
    reads slowly is not: the time is that of each piece of 64 KiB.
    """

    class Reading(WebServer):
        seconds = 25.0

        async def send(self, message: Any) -> None:
            await super().send(message)
            if message["type"] == "http.response.body":
                await trio.sleep(self.seconds)

    app = AsgiApp(service(), limits=Limits(write_stall=30))
    async with app.serving():
        path = await subscribe(app, "large", 3)
        slow = Reading(path)
        began = trio.current_time()
        assert len((await slow.run(app)).body) == 100_000
        assert trio.current_time() - began == pytest.approx(50)
        path = await subscribe(app, "large", 3)
        stalled = Reading(path)
        stalled.seconds = 1e9
        began = trio.current_time()
        await stalled.run(app)
        assert trio.current_time() - began == pytest.approx(30)
        assert not stalled.ended.is_set()
        assert (await ask(app, path)).headers["x-rsio-position"] == "0"


async def test_a_web_server_whose_write_fails_tells_that_the_client_has_gone() -> None:
    """OSError, as the specification has it. The elements are kept."""

    class Failing(WebServer):
        async def send(self, message: Any) -> None:
            await trio.lowlevel.checkpoint()
            raise OSError

    async with serving() as app:
        path = await subscribe(app, "numbers/3", 3)
        await Failing(path).run(app)
        assert elements(await ask(app, path)) == [b"0", b"1", b"2"]


@pytest.mark.parametrize(
    ("root", "path", "raw", "below"),
    [
        ("", "/p/a b", b"/p/a%20b", "/p/a%20b"),
        ("/streams", "/streams/p/a", b"/streams/p/a%2Fb", "/p/a%2Fb"),
        ("/a b/c/", "/a b/c/s/x", b"/a%20b/c/s/x?y", "/s/x"),
        ("/streams", "/other", b"/other", "/other"),
        ("/streams", "/streams/p/ä", None, "/p/%C3%A4"),
        ("", "/p/a/b/", b"/streams/p/a%2Fb", "/p/a%2Fb"),
        ("", "/", b"/streams", "/streams"),
    ],
)
def test_the_path_below_the_mount_stays_encoded(
    root: str, path: str, raw: bytes | None, below: str
) -> None:
    """The root is decoded, and the raw path is not."""
    assert path_of({"path": path, "raw_path": raw, "root_path": root}) == below
