"""HTTP/1.1 over memory, on virtual time."""

import logging
from contextlib import suppress
from typing import Any

import pytest
import trio
import trio.testing
from _engine_client import elements_of
from _site_in_memory import Answer, world
from penstock_http._messages import Response

from penstock import LimitExceeded, Limits, Service, subscribe
from penstock.spi import PeerIdentity

Clock = trio.testing.MockClock


def elements(answer: Answer) -> list[bytes]:
    coding = answer.headers.get("content-encoding")
    headers = () if coding is None else (("Content-Encoding", coding),)
    return elements_of(Response(status=answer.status, headers=headers, body=answer.body))


async def test_one_connection_carries_the_whole_life_of_a_stream(autojump_clock: Clock) -> None:
    """Subscribe, polls, the completion; each answer has a date, and no cache keeps it."""
    async with world() as (server, nursery):
        client = await server.connect(nursery)
        path = await server.subscribe(client, "numbers/5", 3)
        first = await client.ask(f"PUT {path}")
        assert elements(first) == [b"0", b"1", b"2"]
        rest = await client.ask(f"PUT {path}?request=9")
        end = await client.ask(f"PUT {path}")
        assert elements(rest) == [b"3", b"4"]
        assert end.status == 410
        for answer in (first, rest, end):
            assert answer.headers["cache-control"] == "no-store"
            assert "date" in answer.headers
            assert "etag" not in answer.headers
    assert server.told == []


async def test_a_poll_is_answered_when_an_element_comes(autojump_clock: Clock) -> None:
    """After the seconds that the publisher takes; a poll for which none comes gets a 204 after
    25 s, and demand 0 one at once.
    """
    async with world() as (server, nursery):
        client = await server.connect(nursery)
        path = await server.subscribe(client, "slow/10", 1)
        began = trio.current_time()
        assert (await client.ask(f"PUT {path}")).body == b"0"
        assert trio.current_time() - began == pytest.approx(10)
        assert (await client.ask(f"PUT {path}")).status == 204
        assert trio.current_time() - began == pytest.approx(10)
        path = await server.subscribe(client, "slow/40", 1)
        began = trio.current_time()
        for after in (25, 40):
            answer = await client.ask(f"PUT {path}")
            assert trio.current_time() - began == pytest.approx(after)
        assert answer.body == b"0"


@pytest.mark.parametrize("with_positions", [True, False])
async def test_a_connection_that_is_cut_at_any_byte_of_a_batch(
    with_positions: bool, autojump_clock: Clock
) -> None:
    """With positions each element arrives once, wherever it is cut. Without them the server sends
    again what it saw to be lost; an answer that it has written to its end counts as delivered, as
    the draft has it.
    """
    async with world() as (server, nursery):
        client = await server.connect(nursery)
        path = await server.subscribe(client, "numbers/7", 7)
        size = len((await client.ask(f"PUT {path}")).raw)
        for cut in range(0, size + 1, 1 if with_positions else 5):
            client = await server.connect(nursery)
            path = await server.subscribe(client, "numbers/7", 7)
            asked = f"PUT {path} HTTP/1.1\r\nHost: localhost\r\n"
            await client.send(
                f"{asked}{'X-Rsio-Position: 0' if with_positions else 'X-Nothing: 0'}\r\n\r\n".encode()
            )
            raw = b""
            # On a busy machine a poll may be answered with the first of the elements alone.
            with trio.move_on_after(0.1):
                while len(raw) < cut:
                    part = await client.connection.stream.receive_some(cut - len(raw))
                    assert part, raw
                    raw += part
            await client.abort()
            await trio.testing.wait_all_tasks_blocked()
            received = complete_elements(raw)
            another = await server.connect(nursery)
            if with_positions:
                while len(received) < 7:
                    again = await another.ask(f"PUT {path}", f"X-Rsio-Position: {len(received)}")
                    received += elements(again)
                assert received == [b"%d" % number for number in range(7)]
            else:
                again = await another.ask(f"PUT {path}")
                # The same from its start, or what follows: the memory below took the answer to its
                # end, which proves nothing.
                resent = [int(number) for number in elements(again)]
                first = resent[0] if resent else 7
                assert first == 0 or first >= len(received)
                assert resent == list(range(first, first + len(resent)))
            await another.abort()


def complete_elements(raw: bytes) -> list[bytes]:
    """Return the elements that are whole in the beginning of an answer."""
    body, found = raw.partition(b"\r\n\r\n")[2], []
    while len(body) >= 4 and len(body) >= 4 + int.from_bytes(body[:4], "big"):
        size = int.from_bytes(body[:4], "big")
        found.append(body[4 : 4 + size])
        body = body[4 + size :]
    return found


async def test_a_request_that_is_cut_at_any_byte_has_no_effect(autojump_clock: Clock) -> None:
    """Until its last byte: then its demand counts."""
    async with world() as (server, nursery):
        keeper = await server.connect(nursery)
        path = await server.subscribe(keeper, "numbers/50")
        line = f"PUT {path}?request=1 HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
        for cut in range(len(line)):
            client = await server.connect(nursery)
            await client.send(line[:cut])
            await client.abort()
            await trio.testing.wait_all_tasks_blocked()
        answer = await keeper.ask(f"PUT {path}")
        assert (answer.status, answer.headers["x-rsio-requested"]) == (204, "0")


async def test_a_large_answer_that_the_client_does_not_read_is_sent_again(
    autojump_clock: Clock,
) -> None:
    """After `Limits.write_stall` the connection ends, the elements count as lost, and another
    client is served meanwhile.
    """
    async with world(limits=Limits(write_stall=5.0)) as (server, nursery):
        client, other = await server.connect(nursery), await server.connect(nursery)
        path = await server.subscribe(client, "large", 5)
        began = trio.current_time()
        await client.send(f"PUT {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        await trio.testing.wait_all_tasks_blocked()
        numbers = await server.subscribe(other, "numbers/2", 2)
        got: list[bytes] = []
        # An answer has what came before it: one element, or both.
        while len(got) < 2:
            got += elements(await other.ask(f"PUT {numbers}"))
        assert got == [b"0", b"1"]
        await trio.sleep(6)
        # The server has given the connection up.
        assert len(await client.all()) < 200_000
        assert trio.current_time() - began == pytest.approx(6, abs=2)
        # One element, because the client has taken none yet.
        for count in (1, 4):
            assert len(elements(await other.ask(f"PUT {path}"))) == count


async def test_a_client_that_goes_while_its_poll_waits_is_seen_at_once(
    autojump_clock: Clock,
) -> None:
    """The subscription lives on, and no element is lost."""
    async with world() as (server, nursery):
        client = await server.connect(nursery)
        path = await server.subscribe(client, "slow/10", 3)
        await client.send(f"PUT {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        await trio.testing.wait_all_tasks_blocked()
        await client.abort()
        await trio.sleep(15)
        other = await server.connect(nursery)
        assert (await other.ask(f"PUT {path}")).body == b"0"


async def test_a_second_poll_frees_the_first_one(autojump_clock: Clock) -> None:
    """The first gets a 204, and the second waits."""
    async with world() as (server, nursery):
        first, second = await server.connect(nursery), await server.connect(nursery)
        path = await server.subscribe(first, "slow/10", 1)
        line = f"PUT {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
        await first.send(line)
        await trio.testing.wait_all_tasks_blocked()
        await second.send(line)
        assert (await first.answer()).status == 204
        assert (await second.answer()).body == b"0"


async def test_a_streamed_batch_comes_in_chunks(autojump_clock: Clock) -> None:
    """Each when its element is there; a client of HTTP/1.0 reads until the end."""
    async with world() as (server, nursery):
        client = await server.connect(nursery)
        path = await server.subscribe(client, "slow/1", 3)
        await client.send(
            f"PUT {path} HTTP/1.1\r\nHost: localhost\r\nX-Rsio-Delivery: stream\r\n\r\n".encode()
        )
        assert (await client.answer()).headers["transfer-encoding"] == "chunked"
        data = client.rest
        while not data.endswith(b"0\r\n\r\n"):
            data += await client.connection.stream.receive_some()
        assert data == b"5\r\n\0\0\0\x010\r\n5\r\n\0\0\0\x011\r\n5\r\n\0\0\0\x012\r\n0\r\n\r\n"
        client.rest = b""
        path = await server.subscribe(client, "numbers/2", 2)
        await client.send(
            f"PUT {path} HTTP/1.0\r\nHost: localhost\r\nX-Rsio-Delivery: stream\r\n\r\n".encode()
        )
        raw = await client.all()
        assert b"Connection: close\r\n" in raw
        assert raw.endswith(b"\r\n\r\n\0\0\0\x010\0\0\0\x011")


async def test_a_streamed_batch_that_is_cut_is_resumed_by_position(autojump_clock: Clock) -> None:
    """A client that was cut gets the rest, and no element twice. Every seventh byte is tried."""
    async with world() as (server, nursery):
        for cut in range(0, 300, 7):
            client, another = await server.connect(nursery), await server.connect(nursery)
            path = await server.subscribe(client, "slow/1", 3)
            await client.send(
                f"PUT {path} HTTP/1.1\r\nHost: localhost\r\nX-Rsio-Delivery: stream\r\n\r\n".encode()
            )
            raw = b""
            while len(raw) < cut and not raw.endswith(b"\r\n0\r\n\r\n"):
                raw += await client.connection.stream.receive_some(1)
            await client.abort()
            # The chunks are those of the elements here: 5 bytes and their frame.
            received = [
                b"%d" % number for number in range(3) if b"5\r\n\0\0\0\x01%d" % number in raw
            ]
            while len(received) < 3:
                answer = await another.ask(f"PUT {path}", f"X-Rsio-Position: {len(received)}")
                received += elements(answer)
            assert received == [b"0", b"1", b"2"]
            for each in (client, another):
                await each.abort()


async def test_events_are_served_to_a_page(autojump_clock: Clock) -> None:
    """With demand from another request, until the stream ends."""
    async with world() as (server, nursery):
        client, other = await server.connect(nursery), await server.connect(nursery)
        path = await server.subscribe(other, "numbers/2")
        await client.send(f"GET {path}/events HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        await trio.testing.wait_all_tasks_blocked()
        assert (await other.ask(f"PUT {path}/requestMore=5")).status == 200
        raw = b""
        while not raw.endswith(b"0\r\n\r\n"):
            raw += await client.connection.stream.receive_some()
        assert b"Content-Type: text/event-stream\r\n" in raw
        assert b"id: 0\ndata: MA==\n\nid: 1\ndata: MQ==\n\n" in raw
        assert b"event: rsio-complete\ndata:\n\n" in raw
        assert (await other.ask(f"GET {path}/events")).status == 410


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        (b"PUT /p/x HTTP/1.1\nHost: localhost\n\n", 400),
        (b"PUT /p/x HTTP/1.1\r\nHost: localhost\nX: y\r\n\r\n", 400),
        (b"PUT /p/x HTTP/1.1\r\n\r\n", 400),
        (b"PUT /p/x HTTP/1.1\r\nHost: localhost\r\nHost: b\r\n\r\n", 400),
        (
            b"PUT /p/x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            400,
        ),
        (
            b"PUT /p/x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
            400,
        ),
        (b"PUT /p/x HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip\r\n\r\n", 501),
        (b"PUT /p/x HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
        (b"PUT /p/x HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * 20_000 + b"\r\n\r\n", 431),
        (b"PUT /p/" + b"y" * 20_000, 431),
        (
            b"PUT /p/x HTTP/1.1\r\nHost: localhost\r\n"
            + b"".join(b"X%d: y\r\n" % each for each in range(101))
            + b"\r\n",
            431,
        ),
        (
            b"PUT /p/x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n"
            + b"x" * 100_000,
            413,
        ),
        (b"PUT nonsense\r\n\r\n", 400),
        *(
            (b"PUT /p/x HTTP/%b\r\nHost: localhost\r\n\r\n" % version, 505)
            for version in (b"2.0", b"3.1", b"9.9", b"0.9")
        ),
        (b"PUT /p/x HTTP/1.1\r\nHost:\r\n localhost\r\n\r\n", 400),
        (b"PUT /p/x HTTP/1.1\r\nHost: localhost\r\nX: y\r\n\tz\r\n\r\n", 400),
        (
            b"PUT /p/x HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % 2**64,
            413,
        ),
        (
            b"PUT /p/x HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + b"9" * 5000 + b"\r\n\r\n",
            400,
        ),
        (b"X" * 20_000, 431),
    ],
)
async def test_a_malformed_request_is_refused_and_ends_its_connection(
    raw: bytes, status: int, autojump_clock: Clock
) -> None:
    """Where the next request begins is not known.
    Nothing after it is served, and another connection goes on.
    """
    async with world() as (server, nursery):
        client, other = await server.connect(nursery), await server.connect(nursery)

        async def send() -> None:
            with suppress(trio.BrokenResourceError):  # the server has closed before it has read all
                await client.send(raw + b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")

        nursery.start_soon(send)
        received = await client.all()
        answers = received.split(b"HTTP/1.1 ")[1:]
        assert [int(answer[:3]) for answer in answers] == [status]
        assert b"Connection: close\r\n" in received
        assert (await other.ask("GET /healthz")).body == b"ok\n"
        assert len(server.site.engine) == 0
    assert server.told == []


async def test_requests_behind_each_other_are_answered_in_order(autojump_clock: Clock) -> None:
    """A client may send several before it reads; a body ends the connection after its answer."""
    async with world() as (server, nursery):
        client = await server.connect(nursery)
        await client.send(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n" * 3)
        assert [(await client.answer()).status for _ in range(3)] == [200] * 3
        with_body = await client.ask("POST /p/numbers/1", "Content-Length: 5", body=b"hello")
        assert (with_body.status, with_body.headers["connection"]) == (201, "close")
        assert await client.all() == b""


async def test_a_slow_head_is_cut(autojump_clock: Clock) -> None:
    """A stranger after the time of a handshake, with nothing; a known client with 408; one
    without a request after 75 s.
    """
    async with world(limits=Limits(handshake_timeout=4.0)) as (server, nursery):
        began = trio.current_time()
        stranger = await server.connect(nursery)
        await stranger.send(b"PUT /p/x HTTP/1.1\r\n")
        assert await stranger.all() == b""
        assert trio.current_time() - began == pytest.approx(4)
        known = await server.connect(nursery)
        assert (await known.ask("GET /healthz")).status == 200
        await known.send(b"PUT /p/x HTTP/1.1\r\n")
        assert (await known.answer()).status == 408
        idle = await server.connect(nursery)
        assert (await idle.ask("GET /healthz")).status == 200
        began = trio.current_time()
        assert await idle.all() == b""
        assert trio.current_time() - began == pytest.approx(75, abs=2)


async def test_pages_of_known_origins_alone_send_requests(autojump_clock: Clock) -> None:
    """The site's own pages, and those that the option names; these may read the answers, and
    their preflight is answered.
    """
    async with world(origins="https://app.example") as (server, nursery):
        client = await server.connect(nursery)
        for origin, status in (
            ("http://localhost", 201),
            ("https://app.example", 201),
            ("https://evil.example", 403),
            ("null", 403),
        ):
            answer = await client.ask("PUT /p/numbers/1", f"Origin: {origin}")
            assert answer.status == status
            allowed = answer.headers.get("access-control-allow-origin")
            assert allowed == ("https://app.example" if origin == "https://app.example" else None)
        preflight = await client.ask(
            "OPTIONS /p/numbers/1",
            "Origin: https://app.example",
            "Access-Control-Request-Method: PUT",
        )
        assert preflight.status == 204
        assert "PUT" in preflight.headers["access-control-allow-methods"]
        assert "X-Rsio-Position" in preflight.headers["access-control-allow-headers"]
        assert preflight.headers["access-control-max-age"] == "7200"
        assert "X-Rsio-Error" in preflight.headers["access-control-expose-headers"]
        assert (await client.ask("OPTIONS /p/numbers/1")).status == 405


async def test_at_a_loopback_address_the_host_must_be_known(autojump_clock: Clock) -> None:
    """A page can let one of its names lead to 127.0.0.1."""
    async with world(hosts="dev.example") as (server, nursery):
        client = await server.connect(nursery)
        for host, status in (
            ("localhost:80", 200),
            ("127.0.0.1", 200),
            ("[::1]:7", 200),
            ("dev.example", 200),
            ("evil.example", 421),
            ("[::1].evil", 421),
            ("[::1]evil:80", 421),
            ("localhost:80:evil", 421),
            ("localhost:evil", 421),
            ("[localhost]", 421),
            ("", 421),
        ):
            await client.send(f"GET /healthz HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
            assert (await client.answer()).status == status


async def test_health_is_told_and_readiness_ends_with_the_shutdown(autojump_clock: Clock) -> None:
    """A poll that waits is answered when the server stops; a connection without a request ends."""
    async with trio.open_nursery() as outer:
        results: dict[str, Any] = {}
        async with world() as (server, nursery):
            client, idle = await server.connect(nursery), await server.connect(nursery)
            assert (await idle.ask("GET /healthz")).body == b"ok\n"
            assert (await idle.ask("HEAD /readyz")).body == b""
            assert (await idle.ask("PUT /healthz")).status == 405
            path = await server.subscribe(client, "slow/1000", 1)

            async def poll() -> None:
                results["poll"] = await client.ask(f"PUT {path}")
                results["idle"] = await idle.all()

            outer.start_soon(poll)
            await trio.testing.wait_all_tasks_blocked()
            began = trio.current_time()
        assert trio.current_time() - began < 5
    assert (results["poll"].status, results["poll"].headers["x-rsio-error"], results["idle"]) == (
        503,
        "true",
        b"",
    )


async def test_credentials_are_examined_when_a_stream_begins(autojump_clock: Clock) -> None:
    """With those of another principal its subscription is not found;
    a refusal asks for credentials.
    """

    def authenticate(scheme: str, data: bytes, peer: PeerIdentity) -> str | None:
        return {("bearer", b"a"): "alice", ("basic", b"bob:secret"): "bob"}.get((scheme, data))

    served = Service(authenticate=authenticate)
    served.publish("one", [b"1"])
    async with world(served) as (server, nursery):
        client = await server.connect(nursery)
        path = await server.subscribe(client, "one", 1, "Authorization: Bearer a")
        refused = await client.ask("PUT /p/one")
        assert (
            refused.status,
            "x-rsio-error" in refused.headers,
            refused.headers["www-authenticate"],
        ) == (401, False, 'Basic realm="penstock"')
        assert b'WWW-Authenticate: Bearer realm="penstock"\r\n' in refused.raw
        # bob's credentials are right, and alice's stream is not his.
        assert (
            await client.ask(f"PUT {path}", "Authorization: Basic Ym9iOnNlY3JldA==")
        ).status == 404
        assert (await client.ask(f"PUT {path}", "Authorization: Bearer wrong")).status == 401
        assert (await client.ask(f"PUT {path}", "Authorization: Basic %%%")).status == 401
        assert (await client.ask(f"PUT {path}", "Authorization: Bearer a")).body == b"1"


async def test_the_access_log_has_no_secret(
    autojump_clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither the secret of a subscription, nor a query, nor a header."""
    caplog.set_level(logging.INFO, logger="penstock.access")
    async with world() as (server, nursery):
        client = await server.connect(nursery)
        path = await server.subscribe(
            client, "numbers/1?count2=x".partition("?")[0], 1, "Authorization: Bearer hidden"
        )
        await client.ask(f"PUT {path}?request=1&token=hidden")
    lines = [record.getMessage() for record in caplog.records if record.name == "penstock.access"]
    assert ['path="/p/numbers/1"' in lines[0], 'path="/s/..."' in lines[1]] == [True, True]
    assert not [line for line in lines if "hidden" in line or path in line or "request=" in line]


async def test_a_client_that_subscribes_and_goes_costs_little(autojump_clock: Clock) -> None:
    """Its streams are bounded in number, and end after a minute without a request. The oldest that
    was not polled gives way to a newer one; one that was polled does not.
    """
    async with world(limits=Limits(max_subscriptions=20)) as (server, nursery):
        client = await server.connect(nursery)
        first = await server.subscribe(client, "large", 1)
        paths = [await server.subscribe(client, "large", 9223372036854775807) for _ in range(29)]
        lost = await client.ask(f"PUT {first}")
        assert (lost.status, lost.headers["x-rsio-error"]) == (503, "true")
        assert b"another client needed the place" in lost.body
        for path in paths[-20:]:
            assert (await client.ask(f"PUT {path}", "Prefer: wait=0")).status == 204
        refused = [await client.ask("PUT /p/large") for _ in range(2)]
        assert [answer.status for answer in refused] == [429, 429]
        await trio.sleep(61)
        assert len(server.site.engine) == 0
        client = await server.connect(nursery)
        assert (await client.ask("PUT /p/large")).status == 201


async def test_elements_of_streams_that_have_ended_are_bounded(autojump_clock: Clock) -> None:
    """They wait for their client, and count: as places of the client, and as bytes of the
    server, whose largest go first.
    """
    served = Service()
    served.publish("finite", [b"x" * 100_000] * 8)
    limits = Limits(max_subscriptions=20, memory_budget=2_000_000)
    async with world(served, limits=limits) as (server, nursery):
        client = await server.connect(nursery)
        statuses, paths = [], []
        for _ in range(25):
            created = await client.ask("PUT /p/finite?request=8")
            statuses.append(created.status)
            paths.append("/" + created.headers.get("location", "").replace("../", ""))
            if created.status == 201:
                await client.ask(f"PUT {paths[-1]}", "Prefer: wait=0")
            await trio.testing.wait_all_tasks_blocked()
        assert statuses == [201] * 20 + [429] * 5
        kept = sum(
            entry.subscription.kept_bytes() for entry in server.site.engine._entries.values()
        )
        assert kept < 2_000_000
        assert {(await client.ask(f"PUT {path}")).status for path in paths[:20]} == {200, 503}
        assert {type(error) for error in server.told} == {LimitExceeded}


async def test_rs_io_is_served_at_the_same_port(autojump_clock: Clock) -> None:
    """And ReactiveSocket: their first bytes are not a request of HTTP."""
    async with world() as (server, _):
        for protocol in ("", "reactivesocket+"):
            async with subscribe(f"{protocol}memory://site/numbers/3", serializer="json") as stream:
                assert [number async for number in stream] == [0, 1, 2]
    assert server.told == []


async def test_a_client_that_is_lost_is_no_fault_of_the_server(autojump_clock: Clock) -> None:
    """`on_violation` is not called."""
    async with world() as (server, nursery):
        client = await server.connect(nursery)
        await client.send(
            b"PUT /p/numbers/1 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhe"
        )
        await client.connection.send_eof()
        assert await client.all() == b""
    assert server.told == []


def _by_token(scheme: str, data: bytes, peer: object) -> str | None:
    return {
        ("bearer", b"ann's"): "ann",
        ("cookie", b"ann's"): "ann",
        ("cookie", b"bob's"): "bob",
    }.get((scheme, data))


async def test_a_cookie_is_the_credentials_of_a_page() -> None:
    """That of the option alone, among others; the header Authorization comes first."""
    guarded = Service(authenticate=_by_token)
    guarded.publish("numbers", [b"0"] * 3)
    async with world(guarded, cookie="session") as (served, nursery):
        client = await served.connect(nursery)
        statuses = [
            (await client.ask("PUT /p/numbers", *headers)).status
            for headers in (
                ["Cookie: theme=dark; session=ann's"],
                ['Cookie: session="bob\'s"'],
                ["Cookie: session=eve's"],
                ["Cookie: theme=ann's"],
                ["Cookie: session=ann's", "Authorization: Bearer eve's"],
                ["Cookie: session=eve's", "Authorization: Bearer ann's"],
            )
        ]
    assert statuses == [201, 201, 401, 401, 401, 201]


async def test_a_subscription_of_a_cookie_is_found_with_that_principal() -> None:
    """Another cookie of the site may change, and the token may be sent in its place. Another
    user finds nothing, and needs the secret.
    """
    guarded = Service(authenticate=_by_token)
    guarded.publish("numbers", [b"0"] * 3)
    async with world(guarded, cookie="session") as (served, nursery):
        client = await served.connect(nursery)
        stream = await served.subscribe(client, "numbers", 3, "Cookie: session=ann's")
        for headers, status in (
            (["Cookie: a=1; session=ann's"], 200),
            (["Authorization: Bearer ann's"], 410),
            (["Cookie: session=bob's"], 404),
            (["Cookie: session=eve's"], 401),
            ([], 410),
        ):
            assert (await client.ask(f"PUT {stream}", *headers)).status == status, headers


async def test_without_the_option_a_cookie_is_no_credentials() -> None:
    """A service that serves unknown clients serves those of a site with cookies too."""
    seen: list[tuple[str, bytes]] = []
    open_service = Service(
        authenticate=lambda scheme, data, _peer: seen.append((scheme, data)) or "somebody"
    )
    open_service.publish("numbers", [b"0"])
    async with world(open_service) as (served, nursery):
        assert (
            await (await served.connect(nursery)).ask("PUT /p/numbers", "Cookie: session=ann's")
        ).status == 201
    assert seen == [("", b"")]


async def test_wrong_credentials_are_counted_and_bounded(autojump_clock: Clock) -> None:
    """As over RS.io: a client that shows nothing was not refused, one that guesses has to wait, and
    the right token is let in again.
    """
    guarded = Service(authenticate=_by_token)
    guarded.publish("numbers", [b"0"] * 3)
    async with world(guarded) as (served, nursery):
        client = await served.connect(nursery)
        assert (await client.ask("PUT /p/numbers")).status == 401
        assert served.server.refused == {}
        right = "Authorization: Basic YW5uOmFubidz"
        wrong = [
            await client.ask("PUT /p/numbers", f"Authorization: Bearer {number}")
            for number in range(3)
        ]
        assert [answer.status for answer in wrong] == [401] * 3
        assert served.server.refused == {"auth": 3}
        statuses: list[int] = []

        async def guess() -> None:
            guesser = await served.connect(nursery)
            for _ in range(10):
                answer = await guesser.ask("PUT /p/numbers", right)
                statuses.append(answer.status)
                assert (answer.headers.get("retry-after") is not None) == (answer.status == 429)

        async with trio.open_nursery() as guessing:
            for _ in range(40):
                guessing.start_soon(guess)
        assert statuses.count(429) > 200
        assert served.server.refused == {
            "auth": 3 + statuses.count(401),
            "limit:attempts": statuses.count(429),
        }
        stream = await client.ask("PUT /p/numbers", "Authorization: Bearer ann's")
        assert stream.status == 201
