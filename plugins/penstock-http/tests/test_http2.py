"""The mapping over HTTP/2, over memory, on virtual time:
many requests of one connection at the same time.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
import trio.testing
from _engine_client import elements_of
from _raw_http2 import Asking
from _site_in_memory import Answer, World, world
from penstock_http._http2 import MAX_BODIES, head_of
from penstock_http._messages import Response
from penstock_http._site_connection import SiteConnection
from penstock_http._subscription import Delivery
from penstock_http.multiplex import PREFACE
from penstock_http.multiplex._frame_writer import FrameWriter
from trio.testing import wait_all_tasks_blocked

from penstock import Limits, Service

Clock = trio.testing.MockClock
DATA, GOAWAY = 0, 7
STREAMED = ("x-rsio-delivery", "stream")


def elements(answer: Answer) -> list[bytes]:
    coding = answer.headers.get("content-encoding")
    headers = () if coding is None else (("Content-Encoding", coding),)
    return elements_of(Response(status=answer.status, headers=headers, body=answer.body))


@asynccontextmanager
async def connected(
    served: Service | None = None,
    *,
    limits: Limits | None = None,
    window: int = 1 << 20,
    **extra: object,
) -> AsyncIterator[tuple[Asking, World, trio.Nursery]]:
    """Serve, and yield a client; `window` is that of each of its streams."""
    async with world(served, limits=limits, **extra) as (server, nursery):
        client = await connect(server, nursery, window)
        yield client, server, nursery


async def connect(server: World, nursery: trio.Nursery, window: int = 1 << 20) -> Asking:
    client = Asking((await server.connect(nursery)).connection.stream, INITIAL_WINDOW_SIZE=window)
    await client.begin()
    client.h2.increment_flow_control_window(1 << 24)
    await client.flush()
    return client


async def test_one_connection_carries_the_whole_life_of_a_stream(autojump_clock: Clock) -> None:
    """Subscribe, polls, more demand, the completion, a cancel;
    each answer has a date, and no cache keeps it.
    """
    async with connected() as (client, server, _):
        path = await client.subscribe("numbers/5", 3)
        first = await client.ask(f"PUT {path}")
        assert elements(first) == [b"0", b"1", b"2"]
        assert (await client.ask(f"PUT {path}")).status == 204
        rest = await client.ask(f"PUT {path}?request=2", body=b"ignored")
        assert (await client.ask(f"POST {path}/requestMore=1")).status == 200
        end = await client.ask(f"PUT {path}")
        assert elements(rest) == [b"3", b"4"]
        assert end.status == 410
        for answer in (first, rest, end):
            assert answer.headers["cache-control"] == "no-store"
            assert "date" in answer.headers
            assert "connection" not in answer.headers
        assert (await client.ask(f"PUT {path}/cancel")).headers["x-rsio-error"] == "true"
        assert (await client.ask("GET /healthz")).body == b"ok\n"
        head = await client.ask("HEAD /healthz")
        assert (head.headers["content-length"], head.body) == ("3", b"")
        assert (await client.ask("DELETE /p/numbers/5")).headers["allow"] == "PUT, POST"
        assert (await client.ask(f"PUT {path}", ("if-match", "*"))).status == 412
    assert server.told == []


async def test_many_polls_wait_on_one_connection(autojump_clock: Clock) -> None:
    """Each is answered when its element comes, or after 25 s; the others wait on."""
    async with connected() as (client, _, _):
        began = trio.current_time()
        paths = [await client.subscribe(f"slow/{seconds}", 1) for seconds in (30, 20, 10)]
        ids = [await client.send_request(f"PUT {path}") for path in paths]
        got = []
        for stream_id in (ids[2], ids[1], ids[0]):
            answer = await client.answer(stream_id)
            got.append((answer.status, round(trio.current_time() - began)))
        assert got == [(200, 10), (200, 20), (204, 25)]


async def test_a_poll_that_is_reset_loses_nothing_and_leaves_the_others(
    autojump_clock: Clock,
) -> None:
    """Its stream breaks, and its subscription waits for the next request."""
    async with connected() as (client, server, _):
        one, two = [await client.subscribe("slow/10", 1) for _ in range(2)]
        ids = [await client.send_request(f"PUT {path}") for path in (one, two)]
        client.h2.reset_stream(ids[0])
        await client.sync()
        await wait_all_tasks_blocked()
        assert (
            sum(
                entry.subscription.on_change is not None
                for entry in server.site.engine._entries.values()
            )
            == 1
        )
        assert (await client.answer(ids[1])).body == b"0"
        assert (await client.ask(f"PUT {one}")).body == b"0"


async def test_a_request_that_is_reset_at_once_is_not_looked_at(autojump_clock: Clock) -> None:
    """Its RST_STREAM came with it, so its task begins after that."""
    async with connected() as (client, server, _):
        path = await client.subscribe("slow/10", 1)
        client.h2.send_headers(
            99,
            [(":method", "PUT"), (":scheme", "http"), (":authority", "localhost"), (":path", path)],
            end_stream=True,
        )
        client.h2.reset_stream(99)
        await client.sync()
        await wait_all_tasks_blocked()
        assert [entry.subscription.on_change for entry in server.site.engine._entries.values()] == [
            None
        ]


async def test_a_streamed_batch_and_events_grow_beside_each_other(autojump_clock: Clock) -> None:
    """In DATA frames, as elements come."""
    async with connected() as (client, _, _):
        batch = await client.send_request(f"PUT {await client.subscribe('slow/3', 3)}", STREAMED)
        events = await client.send_request(
            f"GET {await client.subscribe('slow/2', 5)}/events?text=1"
        )
        streamed = await client.answer(batch)
        assert streamed.headers["x-accel-buffering"] == "no"
        assert elements(streamed) == [b"0", b"1", b"2"]
        assert (await client.answer(events)).body.endswith(
            b"id: 2\ndata: 2\n\nevent: rsio-complete\ndata:\n\n"
        )


async def test_a_streamed_batch_that_is_reset_is_sent_again(autojump_clock: Clock) -> None:
    """From its beginning: the client sends no positions."""
    async with connected() as (client, _, _):
        path = await client.subscribe("slow/3", 3)
        batch = await client.send_request(f"PUT {path}", STREAMED)
        await client.read_until(lambda event: type(event).__name__ == "DataReceived")
        client.h2.reset_stream(batch)
        await client.sync()
        again = await client.ask(f"PUT {path}", STREAMED)
        assert again.headers["x-rsio-position"] == "0"
        assert elements(again) == [b"0", b"1", b"2"]


@pytest.mark.parametrize("breaks", [True, False])
async def test_a_written_answer_counts_as_lost_if_the_connection_breaks(
    breaks: bool, autojump_clock: Clock
) -> None:
    """A client that ends its connection has read what it wanted."""
    async with connected() as (client, server, nursery):
        paths = [await client.subscribe(f"numbers/{count}", 2) for count in (4, 5)]
        for path in paths:
            assert elements(await client.ask(f"PUT {path}")) == [b"0", b"1"]
        if breaks:
            client.h2.ping(b"12345678")
            await client.send(b"\xff" * 9)  # a frame that is too large
        else:
            await client.stream.aclose()
        await trio.sleep(2)
        later = await connect(server, nursery)
        for path in paths:
            assert elements(await later.ask(f"PUT {path}?request=2"))[0] == (
                b"0" if breaks else b"2"
            )


async def test_elements_count_as_written_before_their_task_runs_again(
    autojump_clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next poll of a client may be looked at before:
    without positions it would get the elements again.
    """
    happened: list[str] = []
    on_written, send = Delivery.on_written, FrameWriter.send

    def note_written(delivery: Delivery) -> None:
        happened.append("written")
        on_written(delivery)

    async def note_sent(*arguments: Any, **more: Any) -> None:
        await send(*arguments, **more)
        happened.append("the task runs")

    monkeypatch.setattr(Delivery, "on_written", note_written)
    async with connected() as (client, _, _):
        path = await client.subscribe("numbers/5", 2)
        monkeypatch.setattr(FrameWriter, "send", note_sent)
        assert elements(await client.ask(f"PUT {path}")) == [b"0", b"1"]
    assert happened == ["written", "the task runs"]


async def test_a_streamed_batch_whose_end_the_system_has_not_taken_is_sent_again(
    autojump_clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client has its elements, and not the end of the answer: it may take the answer for
    broken. So the server waits until the system has the last frame, and then counts the answer as
    written.
    """
    served = Service()

    @served.publisher("three")
    async def three() -> AsyncIterator[bytes]:
        for element in (b"0", b"1", b"2"):
            yield element
            await trio.sleep(1)
        await trio.sleep_forever()

    async def take_nothing(*_: object) -> None:
        await trio.sleep_forever()

    async with connected(served) as (client, server, nursery):
        path = await client.subscribe("three", 100)
        await client.send_request(f"PUT {path}", STREAMED, ("prefer", "wait=5"))
        for _ in range(3):
            await client.read_until(lambda event: type(event).__name__ == "DataReceived")
        # From now on the system takes no byte of the server.
        monkeypatch.setattr(SiteConnection, "send_now", lambda *_: 0)
        monkeypatch.setattr(SiteConnection, "send", take_nothing)
        await trio.sleep(6)
        await client.stream.aclose()
        await wait_all_tasks_blocked()
        monkeypatch.undo()
        later = await connect(server, nursery)
        again = await later.ask(f"PUT {path}")
        assert (again.headers["x-rsio-position"], elements(again)) == ("0", [b"0", b"1", b"2"])


async def test_a_stream_without_credit_costs_little_and_ends_in_time(autojump_clock: Clock) -> None:
    """The elements of `MAX_BODIES` answers are in memory. After `Limits.write_stall` the answers
    are lost, and their elements kept.
    """
    async with connected(window=1000, limits=Limits(write_stall=10, max_subscriptions=50)) as (
        client,
        server,
        _,
    ):
        paths = [await client.subscribe("large", 5) for _ in range(20)]
        ids = [await client.send_request(f"PUT {path}") for path in paths]
        await client.sync()
        taken = [
            entry for entry in server.site.engine._entries.values() if entry.subscription.cursor
        ]
        assert len(taken) == MAX_BODIES
        # Another stream goes on, because it has credit for its answer.
        assert (await client.ask("GET /healthz")).status == 200
        for stream_id in ids:
            assert (await client.answer(stream_id)).status == 0
        assert trio.current_time() == pytest.approx(20 / MAX_BODIES * 10, abs=1)
        client.h2.update_settings({4: 1 << 20})
        await client.flush()
        again = await client.ask(f"PUT {paths[7]}")
        assert again.headers["x-rsio-position"] == "0"
        assert len(elements(again)) >= 1


async def test_a_body_is_read_and_bounded(autojump_clock: Clock) -> None:
    """It means nothing. A long one gets 413, and a slow one 408; other requests go on."""
    async with connected() as (client, _, _):
        path = await client.subscribe("numbers/1", 1)
        long = await client.send_request(f"PUT {path}", ends=False)
        for _ in range(5):
            client.h2.send_data(long, bytes(16_000))
            await client.sync()
        assert (await client.answer(long)).status == 413
        slow = await client.send_request(f"PUT {path}", ends=False)
        assert (await client.ask("GET /healthz")).status == 200
        assert (await client.answer(slow)).status == 408
        assert (await client.ask(f"PUT {path}")).body == b"0"


async def test_a_request_with_too_many_fields_is_refused_alone(autojump_clock: Clock) -> None:
    """With 431, and the connection goes on."""
    async with connected() as (client, _, _):
        assert (
            await client.ask("PUT /p/numbers/1", *[(f"x{number}", "") for number in range(110)])
        ).status == 431
        assert (await client.ask("PUT /p/numbers/1")).status == 201


async def test_a_shutdown_answers_every_request_that_waits(autojump_clock: Clock) -> None:
    """Polls get 503, events end, and a GOAWAY comes. It takes no second."""
    received: list[tuple[int, int, bytes]] = []
    async with trio.open_nursery() as reading, connected() as (client, _, _):
        poll = await client.send_request(f"PUT {await client.subscribe('slow/100', 1)}")
        events = await client.send_request(f"GET {await client.subscribe('slow/100', 1)}/events")
        await client.read_until(lambda event: type(event).__name__ == "DataReceived")
        began = trio.current_time()

        async def read() -> None:
            received.extend(
                [(kind, stream_id, body) async for kind, _, stream_id, body in client.frames()]
            )

        reading.start_soon(read)
    assert (DATA, poll, b"the server shuts down\n") in received
    assert (DATA, events, b"") in received
    assert GOAWAY in [kind for kind, _, _ in received]
    assert trio.current_time() - began < 1.5


async def test_a_shutdown_waits_for_no_client_that_does_not_read(autojump_clock: Clock) -> None:
    """An answer without credit and a subscription are cut within `Limits.drain`."""
    async with connected(window=10, limits=Limits(drain=1)) as (client, _, _):
        await client.send_request(f"PUT {await client.subscribe('large', 5)}")
        await client.sync()
        began = trio.current_time()
    assert trio.current_time() - began < 2


async def test_a_fault_in_one_request_resets_its_stream_alone(autojump_clock: Clock) -> None:
    """It is reported, and the others go on."""
    async with connected() as (client, server, _):
        path = await client.subscribe("slow/5", 1)
        waits = await client.send_request(f"PUT {path}")
        receive = server.site.engine.receive

        def faulty(request: Any, now: float) -> Any:
            if request.path == "/p/fault":
                raise RuntimeError("a fault")
            return receive(request, now)

        server.site.engine.receive = faulty  # type: ignore[method-assign]  # a fault that no request causes
        assert (await client.ask("PUT /p/fault")).status == 0
        assert (await client.answer(waits)).body == b"0"
    assert [str(error) for error in server.told] == ["a fault"]


async def test_the_preface_may_come_in_any_pieces(autojump_clock: Clock) -> None:
    """Its first bytes are those of a PUT or a POST too."""
    for cut in (1, 2, 3, len(PREFACE) - 1):
        async with world() as (server, nursery):
            client = Asking((await server.connect(nursery)).connection.stream)
            client.h2.initiate_connection()
            first = client.h2.data_to_send()
            await client.send(first[:cut])
            await wait_all_tasks_blocked()
            await client.send(first[cut:])
            assert (await client.ask("GET /healthz")).status == 200


async def test_answered_requests_are_no_flood(autojump_clock: Clock) -> None:
    """The budget of requests is for those that wait for no answer."""
    async with connected() as (client, _, _):
        for _ in range(1050):
            assert (await client.ask("GET /healthz")).status == 200


async def test_streams_of_bytes_are_served_at_the_same_port(autojump_clock: Clock) -> None:
    """A POST with the content type of RS.io carries a session, beside requests."""
    async with connected() as (client, _, _):
        stream_id = await client.send_request(
            "POST /", ("content-type", "application/x-rsio"), ends=False
        )
        assert await client.status(stream_id) == "200"
        client.h2.send_data(stream_id, bytes.fromhex("01 00 00"))
        await client.flush()
        hello: Any = await client.read_until(
            lambda event: type(event).__name__ == "DataReceived" and event.stream_id == stream_id
        )
        assert hello.data[:2] == b"\x02\x00"
        assert (await client.ask("GET /healthz")).status == 200
        # The path is the one of the byte streams, "/".
        assert (
            await client.ask("POST /elsewhere", ("content-type", "application/x-rsio"))
        ).status == 404


async def test_pages_of_other_origins_are_refused(autojump_clock: Clock) -> None:
    """As over HTTP/1.1; a page of a known origin reads the answers."""
    async with connected(origins="https://app.example") as (client, _, _):
        assert (
            await client.ask("PUT /p/numbers/1", ("origin", "https://evil.example"))
        ).status == 403
        known = await client.ask("PUT /p/numbers/1", ("origin", "https://app.example"))
        assert known.headers["access-control-allow-origin"] == "https://app.example"
        preflight = await client.ask("OPTIONS /p/numbers/1", ("origin", "https://app.example"))
        assert (preflight.status, preflight.headers["access-control-max-age"]) == (204, "7200")


def test_the_fields_of_a_request_become_its_head() -> None:
    """Cookies are joined, and ``:authority`` is the host; without it the Host header is."""
    pseudo = [(b":method", b"PUT"), (b":scheme", b"http"), (b":path", b"/p/a?b=c")]
    head = head_of(
        [*pseudo, (b":authority", b"LOCALHOST:1"), (b"cookie", b"a=1"), (b"cookie", b"b=2")]
    )
    assert (head.request.path, head.request.query, head.host) == ("/p/a", "b=c", "localhost:1")
    assert head.request.header("cookie") == "a=1; b=2"
    assert head_of([*pseudo, (b"host", b"x")]).host == "x"
