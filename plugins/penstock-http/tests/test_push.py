"""Elements that are pushed over HTTP/2:
with the client h2 over memory, with nghttp and Node.js over real sockets.
"""

import json
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
import trio.testing
from _raw_http2 import Asking
from _site_in_memory import World, service, world
from hyperframe.frame import RstStreamFrame

from penstock import serve

Clock = trio.testing.MockClock
NGHTTP = shutil.which("nghttp") or ""
NODE = shutil.which("node") or ""
BATCHES = ("accept-encoding", "x-rsio-lengthprefixedelements")


@asynccontextmanager
async def connected(**settings: int) -> AsyncIterator[tuple[Asking, World]]:
    async with world() as (server, nursery):
        client = Asking((await server.connect(nursery)).connection.stream, **settings)
        await client.begin()
        yield client, server


async def pushes(client: Asking, carrier: int) -> list[tuple[str, int, bytes]]:
    """Return the path, the status and the body of each push,
    once the request for them is answered to its end.
    """
    assert (await client.answer(carrier)).status == 200
    promised: list[Any] = [
        event for event in client.events if type(event).__name__ == "PushedStreamReceived"
    ]
    client.events = [event for event in client.events if event not in promised]
    found = []
    for event in promised:
        path = dict(event.headers)[b":path"].decode()
        answer = await client.answer(event.pushed_stream_id)
        assert event.parent_stream_id == carrier
        assert dict(event.headers)[b":method"] == b"GET"
        assert answer.headers["cache-control"] == "no-store"
        assert path.endswith(f"/element/{answer.headers['x-rsio-position']}")
        found.append((path, answer.status, answer.body))
    return found


async def test_requested_elements_are_pushed_as_they_come(autojump_clock: Clock) -> None:
    """Each at its path, in order; the request ends when its demand is used up.
    The last push is the completion.
    """
    async with connected() as (client, _):
        path = await client.subscribe("slow/10")
        began = trio.current_time()
        carrier = await client.send_request(f"PUT {path}/requestMore=2")
        assert await pushes(client, carrier) == [
            (f"{path}/element/0", 200, b"0"),
            (f"{path}/element/1", 200, b"1"),
        ]
        assert trio.current_time() - began == pytest.approx(20)
        carrier = await client.send_request(f"PUT {path}/requestMore=5")
        assert await pushes(client, carrier) == [
            (f"{path}/element/2", 200, b"2"),
            (f"{path}/element/3", 410, b""),
        ]


async def test_a_failure_is_pushed(autojump_clock: Clock) -> None:
    """With its text, behind the elements."""
    async with connected() as (client, _):
        path = await client.subscribe("failing")
        carrier = await client.send_request(f"PUT {path}?requestMore=5")
        assert [(status, body) for _, status, body in await pushes(client, carrier)] == [
            (200, b"0"),
            (500, b"out of stock\n"),
        ]


async def test_a_client_that_names_batches_gets_them(autojump_clock: Clock) -> None:
    """Several elements in one push."""
    async with connected() as (client, _):
        path = await client.subscribe("numbers/4", 4)
        await trio.testing.wait_all_tasks_blocked()
        carrier = await client.send_request(f"PUT {path}/requestMore=1", BATCHES)
        first, *_ = await pushes(client, carrier)
        assert first == (
            f"{path}/element/0",
            200,
            b"".join(b"\x00\x00\x00\x01%d" % number for number in range(4)),
        )


@pytest.mark.parametrize("settings", [{"ENABLE_PUSH": 0}, {"MAX_CONCURRENT_STREAMS": 0}])
async def test_without_permission_nothing_is_pushed(
    settings: dict[str, int], autojump_clock: Clock
) -> None:
    """The request is answered at once, and a poll has the elements."""
    async with connected(**settings) as (client, _):
        path = await client.subscribe("numbers/2")
        assert (await client.ask(f"PUT {path}/requestMore=1")).status == 200
        assert (await client.ask(f"PUT {path}")).body == b"0"
        assert not [
            event for event in client.events if type(event).__name__ == "PushedStreamReceived"
        ]


async def test_a_second_request_adds_to_the_first_one(autojump_clock: Clock) -> None:
    """It is answered at once, and the first one carries all pushes.
    A poll that waits is also preferred to pushes.
    """
    async with connected() as (client, _):
        path = await client.subscribe("slow/10")
        carrier = await client.send_request(f"PUT {path}/requestMore=1")
        await client.sync()
        assert (await client.ask(f"PUT {path}/requestMore=1")).status == 200
        assert [body for _, _, body in await pushes(client, carrier)] == [b"0", b"1"]
        poll = await client.send_request(f"PUT {path}?request=1")
        await client.sync()
        assert (await client.ask(f"PUT {path}/requestMore=1")).status == 200
        assert (await client.answer(poll)).body == b"2"


async def test_a_pushed_element_can_be_asked_for(autojump_clock: Clock) -> None:
    """At the path that was promised, while it is kept."""
    async with connected() as (client, _):
        path = await client.subscribe("numbers/3")
        await pushes(client, await client.send_request(f"PUT {path}/requestMore=2"))
        again = await client.ask(f"GET {path}/element/1")
        assert (again.status, again.body, again.headers["x-rsio-position"]) == (200, b"1", "1")
        assert (await client.ask(f"GET {path}/element/2")).status == 404
        assert (await client.ask(f"PUT {path}/element/1")).headers["allow"] == "GET"
        await client.ask(f"PUT {path}", ("x-rsio-position", "2"))
        assert (await client.ask(f"GET {path}/element/1")).status == 404


@pytest.mark.parametrize("window", [1 << 16, 0])
async def test_a_push_that_is_reset_is_not_delivered(window: int, autojump_clock: Clock) -> None:
    """The reset comes after the end of the push, or before: without a window none of it was sent.
    The pushes end, and a poll has the element and the following ones.
    """
    async with connected(INITIAL_WINDOW_SIZE=window) as (client, _):
        path = await client.subscribe("slow/10")
        carrier = await client.send_request(f"PUT {path}/requestMore=3")
        promise: Any = await client.read_until(
            lambda event: type(event).__name__ == "PushedStreamReceived"
        )
        await client.sync()
        await client.send(RstStreamFrame(promise.pushed_stream_id, error_code=8).serialize())
        client.h2.update_settings({4: 1 << 16})
        await client.flush()
        assert (await client.answer(carrier)).status == 200
        poll = await client.ask(f"PUT {path}")
        assert (poll.body, poll.headers["x-rsio-position"]) == (b"0", "0")


async def test_pushes_that_are_lost_with_the_connection_come_again(autojump_clock: Clock) -> None:
    """On another connection, from the first one on."""
    async with world() as (server, nursery):
        client = Asking((await server.connect(nursery)).connection.stream)
        await client.begin()
        path = await client.subscribe("slow/1")
        await pushes(client, await client.send_request(f"PUT {path}/requestMore=3"))
        await client.send(b"\xff" * 9)  # a frame that is too large
        await trio.sleep(2)
        other = await server.connect(nursery)
        poll = await other.ask(f"PUT {path}", "Accept-Encoding: identity")
        assert (poll.body, poll.headers["x-rsio-position"]) == (b"0", "0")


@pytest.mark.parametrize(("option", "promises"), [((), 3), (("--no-push",), 0)])
@pytest.mark.skipif(not (NGHTTP and shutil.which("curl")), reason="needs nghttp and curl")
async def test_nghttp_receives_pushes(option: tuple[str, ...], promises: int) -> None:
    """Two elements and the completion; with ``--no-push`` a plain answer."""
    async with serve(service(), "http://127.0.0.1:0") as server:
        base = server.addresses[0]
        created = await trio.run_process(
            ["curl", "-s", "-i", "-X", "PUT", f"{base}/p/numbers/2"], capture_stdout=True
        )
        location = created.stdout.decode().partition("Location: ")[2].split()[0].replace("../", "")
        command = [
            NGHTTP,
            "-v",
            "-n",
            *option,
            "-H",
            ":method: PUT",
            f"{base}/{location}/requestMore=9",
        ]
        done = await trio.run_process(command, capture_stdout=True)
    shown = done.stdout.decode("latin-1")
    assert shown.count("recv PUSH_PROMISE frame") == promises
    assert shown.count(":status: 200") == (3 if promises else 1)
    assert shown.count(":status: 410") == (1 if promises else 0)


PROGRAM = """
const http2 = require("http2");
const [base, listens] = process.argv.slice(1);
const client = http2.connect(base, {settings: {enablePush: listens === "yes"}});
const got = [];
const read = (stream) => new Promise((resolve) => {
  let body = "";
  stream.setEncoding("utf8");
  stream.on("data", (data) => { body += data; });
  stream.on("error", () => {});
  stream.on("close", () => resolve(body));
});
const ask = (path) => new Promise((resolve) => {
  const stream = client.request({":method": "PUT", ":path": path});
  let headers;
  stream.on("response", (received) => { headers = received; });
  read(stream).then((body) => resolve([headers, body]));
  stream.end();
});
client.on("stream", (stream) => {
  stream.on("push", (received) => read(stream).then((body) => got.push([received[":status"], body])));
});
(async () => {
  const [created] = await ask("/p/numbers/2");
  const path = "/" + created.location.replaceAll("../", "");
  await ask(path + "/requestMore=9");
  await new Promise((resolve) => setImmediate(resolve));
  const rest = [];
  for (;;) {
    const [headers, body] = await ask(path);
    rest.push([headers[":status"], body]);
    if (headers[":status"] !== 200) break;
  }
  console.log(JSON.stringify([got, rest]));
  client.close();
})();
"""


@pytest.mark.skipif(not NODE, reason="needs Node.js")
@pytest.mark.parametrize("listens", ["yes", "no"])
async def test_node_receives_pushes_or_polls(listens: str) -> None:
    """A client that permits no pushes has every element in its polls."""
    async with serve(service(), "http://127.0.0.1:0") as server:
        done = await trio.run_process(
            [NODE, "-e", PROGRAM, str(server.addresses[0]), listens], capture_stdout=True
        )
    got, rest = json.loads(done.stdout)
    if listens == "yes":
        assert got == [[200, "0"], [200, "1"], [410, ""]]
        assert rest == [[410, ""]]
    else:
        assert rest[-1] == [410, ""]
        assert "".join(body for _, body in rest).replace("\0", "").replace("\1", "") == "01"
