"""The table of what each client can do, in docs/reference/clients.md. Each cell is a trial: a
program that runs with the client, or a call that is refused. PENSTOCK_WRITE_OUT=1 writes the table.

Run by `nox -s plugins`, which installs all transports, encodings and serializers.
"""

import json
import os
import shlex
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import attrs
import pyarrow as pa
import pytest
from google.protobuf.wrappers_pb2 import StringValue

import penstock
from penstock import aio
from penstock.api import UsageError
from penstock.spi import Reconnect, build_registry
from tests._shells import AioShell, BlockingShell, Shell, TrioShell
from tests.browser._programs import CLIENT, node, node_websocket
from tests.contracts._drained_server import two_servers
from tests.distributions._offers import CUT_AT, ELEMENTS, TOKEN, Quote, World, offering

ROOT: Final = Path(__file__).parents[2]
TABLE: Final = ROOT / "docs/reference/_clients.md"
SHELLS: Final = {"trio": TrioShell, "asyncio": AioShell, "blocking": BlockingShell}
AGAIN: Final = Reconnect(first=0.01)
EXEC: Final = "exec:" + shlex.join([sys.executable, str(ROOT / "examples/exec_pipe.py"), "child"])

Trial = Callable[[Shell, World], Awaitable[None]]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    # A short path, for the socket.
    with offering(tmp_path_factory.mktemp("w")) as made:
        yield made


# --- the trials


async def _read(peer: Any, name: str = "numbers", **options: Any) -> list[Any]:
    async with peer.subscribe(name, **options) as stream:
        return [element async for element in stream]


def _over(name: str, **options: Any) -> Trial:
    """Read over a connection to the URL of that name."""

    async def read(shell: Shell, world: World) -> None:
        more = {"options": world.tls} if name in ("tls", "wss") else {}
        async with shell.connect(world.urls[name], **more, **options) as peer:
            assert await _read(peer, type=int, demand=16) == list(range(ELEMENTS))

    return read


@asynccontextmanager
async def _served_here(shell: Shell, url: str) -> AsyncIterator[None]:
    if isinstance(shell, TrioShell):
        async with penstock.serve(_one_stream(penstock.Service()), url):
            yield
    elif isinstance(shell, AioShell):
        async with aio.serve(_one_stream(aio.Service()), url):
            yield
    else:
        yield


def _one_stream(service: Any) -> Any:
    service.publish("raw", [b"bytes"])
    return service


async def _memory(shell: Shell, world: World) -> None:
    async with _served_here(shell, "memory://table"), shell.connect("memory://table") as peer:
        assert await _read(peer, "raw") == [b"bytes"]


async def _exec(shell: Shell, world: World) -> None:
    async with (
        shell.connect(EXEC) as peer,
        peer.subscribe("primes", serializer="json", demand=4) as stream,
    ):
        assert await anext(stream) == 2


async def _http(shell: Shell, world: World) -> None:
    url = f"{world.urls['http']}/p/numbers"
    blocks = {"trio": penstock.subscribe, "asyncio": aio.subscribe}
    block = blocks.get(shell.name, shell.connect)(
        url, **({"type": int} if shell.name in blocks else {})
    )
    async with block as stream:
        assert [number async for number in stream] == list(range(ELEMENTS))


def _typed(name: str, expected: Any, **options: Any) -> Trial:
    async def read(shell: Shell, world: World) -> None:
        async with shell.connect(world.urls["tcp"], registry=build_registry()) as peer:
            assert await _read(peer, name, **options) == expected

    return read


async def _batches(shell: Shell, world: World) -> None:
    async with (
        shell.connect(world.urls["tcp"]) as peer,
        peer.subscribe("numbers", type=int) as stream,
    ):
        assert [n async for batch in stream.batches() for n in batch] == list(range(ELEMENTS))


async def _buffers(shell: Shell, world: World) -> None:
    async with shell.connect(world.urls["tcp"]) as peer, peer.subscribe("packed") as stream:
        assert b"".join([piece async for piece in stream.buffers()]) == b"0000" * ELEMENTS


async def _by_hand(shell: Shell, world: World) -> None:
    async with (
        shell.connect(world.urls["tcp"]) as peer,
        peer.subscribe("numbers", type=int, demand=0) as stream,
    ):
        stream.request(2)
        assert [await anext(stream), await anext(stream)] == [0, 1]


async def _places(shell: Shell, world: World) -> None:
    async with (
        shell.connect(world.urls["tcp"]) as peer,
        peer.subscribe("log", type=int, start=5, stop=8) as stream,
    ):
        assert [number async for number in stream] == [5, 6, 7]
        assert stream.position == 8


async def _time(shell: Shell, world: World) -> None:
    async with shell.connect(world.urls["tcp"]) as peer:
        assert await peer.position_at("log", 0) == 0


async def _deadline(shell: Shell, world: World) -> None:
    async with shell.connect(world.urls["tcp"]) as peer, peer.subscribe("silent") as stream:
        assert await anext(stream) == b"first"
        with pytest.raises(TimeoutError):
            await shell.within(0.05, lambda: anext(stream))


async def _statistics(shell: Shell, world: World) -> None:
    async with (
        shell.connect(world.urls["tcp"]) as peer,
        peer.subscribe("numbers", type=int) as stream,
    ):
        assert await anext(stream) == 0
        assert peer.statistics().is_open
        assert stream.statistics().received


async def _request(shell: Shell, world: World) -> None:
    async with shell.connect(world.urls["tcp"]) as peer:
        assert await peer.request("double", 21, type=int) == 42


async def _request_in_time(shell: Shell, world: World) -> None:
    async with shell.connect(world.urls["tcp"]) as peer:
        with pytest.raises(TimeoutError):
            await shell.within(0.05, lambda: peer.request("never"))


async def _data(shell: Shell, world: World) -> None:
    async with shell.connect(world.urls["reactivesocket"]) as peer:
        assert await peer.request_response("raw") == b"bytes"


async def _publish(shell: Shell, world: World) -> None:
    async with shell.connect(world.urls["back"], publishers={"mine": [b"1", b"2"]}) as peer:
        assert await peer.request("read", "mine", type=str) == "1,2"


async def _answer(shell: Shell, world: World) -> None:
    service = penstock.Service() if isinstance(shell, TrioShell) else aio.Service()

    @service.request("mood")
    async def mood() -> bytes:
        return b"good"

    async with shell.connect(world.urls["back"], service=service) as peer:
        assert await peer.request("ask", "mood", type=str) == "good"


async def _write(shell: Shell, world: World) -> None:
    name = shell.name
    rows = [f"{name} {number}".encode() for number in range(3)]
    ids = f"query={name}&batch=0&run=1&partition=0&attempt=1"
    async with shell.connect(world.urls["back"], publishers={"rows": rows}) as peer:
        await peer.request(f"orders/stage?{ids}", serializer="json")
        batch = {"query": name, "batch": 0, "attempts": [(0, "1", 3)]}
        assert await peer.request("orders/commit", batch, serializer="json") == {"is_first": True}


async def _credentials(shell: Shell, world: World) -> None:
    async with shell.connect(world.urls["closed"], credentials=TOKEN) as peer:
        assert await peer.request("double", 21, type=int) == 42


async def _examine(shell: Shell, world: World) -> None:
    seen = []

    def look(_scheme: str, data: bytes, _peer: Any) -> str:
        seen.append(data)
        return "the server"

    async with shell.connect(world.urls["closed"], credentials=TOKEN, authenticate=look) as peer:
        assert await peer.request("double", 21, type=int) == 42
    assert seen == [b"swordfish"]


async def _reconnect(shell: Shell, world: World) -> None:
    relay = world.relays["tcp"]
    async with shell.connect(relay.url, reconnect=AGAIN) as peer:
        async with peer.subscribe("silent") as stream:
            assert await anext(stream) == b"first"
            relay.cut()
            with pytest.raises(penstock.ConnectionLost):
                await anext(stream)
        assert await _read(peer, "raw") == [b"bytes"]


async def _follow(shell: Shell, world: World) -> None:
    with two_servers() as servers:
        async with (
            shell.connect(servers.url, reconnect=AGAIN) as peer,
            peer.subscribe("slow", type=str) as stream,
        ):
            assert await anext(stream) == "old, first"
            servers.replace()
            assert await peer.request("who", type=str) == "new"
            servers.go_on()
            assert await anext(stream) == "old, last"


async def _go_on(shell: Shell, world: World) -> None:
    relay, got = world.relays["tcp"], []
    async with shell.read_on(
        relay.url, "log", type=int, stop="latest", demand=16, reconnect=AGAIN
    ) as stream:
        async for number in stream:
            got.append(number)
            if number == CUT_AT:
                relay.cut()
    assert got == list(range(ELEMENTS))


async def _resume(shell: Shell, world: World) -> None:
    relay, got = world.relays["resumed"], []
    async with (
        shell.connect(relay.url, resume=True) as peer,
        peer.subscribe("numbers", type=int, demand=16) as stream,
    ):
        async for number in stream:
            got.append(number)
            if number == CUT_AT:
                relay.cut()
    assert got == list(range(ELEMENTS))


# --- the same trials in JavaScript: bodies of async functions that throw if they fail


def _js_over(url: str) -> str:
    return f"""
        const connection = await connect({url});
        equal(await all(connection.stream("numbers", {{ type: "json", demand: 16 }})), count);
        await connection.close();"""


def _js_typed(name: str, options: str, expected: str) -> str:
    return f"""
        const connection = await connect(urls.ws);
        equal(await all(connection.stream("{name}", {options})), {expected});
        await connection.close();"""


JS_HTTP: Final = """equal(await all(stream(urls.http + "/p/numbers", { type: "json" })), count);"""
JS_BY_HAND: Final = """
    const connection = await connect(urls.ws), got = [];
    await new Promise((resolve, reject) => connection.publisher("numbers", { type: "json" }).subscribe({
      onSubscribe(subscription) { this.subscription = subscription; subscription.request(2); },
      onNext(number) { if (got.push(number) === 2) { this.subscription.cancel(); resolve(); } },
      onError: reject, onComplete: reject,
    }));
    equal(got, [0, 1]);
    await connection.close();"""
JS_PLACES: Final = """
    const connection = await connect(urls.ws);
    const log = connection.stream("log", { type: "json", start: 5, stop: 8 });
    equal(await all(log), [5, 6, 7]);
    equal(log.position, 8);
    await connection.close();"""
JS_TIME: Final = """
    const connection = await connect(urls.ws);
    equal(await connection.positionAt("log", 0), 0);
    await connection.close();"""
JS_DEADLINE: Final = """
    const connection = await connect(urls.ws);
    const silent = connection.stream("silent", { signal: AbortSignal.timeout(50) });
    equal((await all(silent).catch((error) => error)).name, "TimeoutError");
    await connection.close();"""
JS_REQUEST: Final = """
    const connection = await connect(urls.ws);
    equal(await connection.ask("double", 21, { type: "json" }), 42);
    await connection.close();"""
JS_CREDENTIALS: Final = """
    const connection = await connect(urls["closed ws"], { bearer: "swordfish" });
    equal(await connection.ask("double", 21, { type: "json" }), 42);
    await connection.close();"""
JS_RECONNECT: Final = """
    const connection = await connect(urls.relay, { reconnect: { first: 10 } });
    await connection.ask("cut", "ws").catch(() => {});
    equal(await connection.ask("double", 21, { type: "json" }), 42);
    await connection.close();"""
JS_GO_ON: Final = """
    const connection = await connect(urls.relay, { reconnect: { first: 10 } }), got = [];
    const log = connection.stream("log", { type: "json", stop: "latest", demand: 16 });
    for await (const number of log)
      if (got.push(number) === 100) await connection.ask("cut", "ws").catch(() => {});
    equal(got, count);
    await connection.close();"""


TCP: Final = "no; `tcp`, `tls`, `unix`"
PAGE: Final = "no; a page has `ws`, `wss` and HTTP"


@attrs.frozen
class Row:
    """One line of the table."""

    feature: str
    trial: Trial
    javascript: str | None = None
    """The trial; None if the client has no such call."""
    says: Mapping[str, str] = attrs.field(factory=dict)
    """The text of the cell in place of "yes", by the client."""
    refused: frozenset[str] = frozenset()
    """The clients that refuse the call."""

    def cell(self, client: str) -> str:
        return self.says.get(client, "yes")


ONLY_TCP: Final = frozenset({"blocking"})

ROWS: Final = (
    Row("`tcp://`", _over("tcp"), says={"javascript": PAGE}),
    Row(
        "`tls://`",
        _over("tls"),
        says={"javascript": PAGE},
    ),
    Row("`unix://`", _over("unix"), says={"javascript": PAGE}),
    *(
        Row(
            f"`{name}://`",
            _over(name),
            _js_over(f"urls.{name}"),
            says={"blocking": TCP},
            refused=ONLY_TCP,
        )
        for name in ("ws", "wss")
    ),
    Row("`h2://`", _over("h2"), says={"javascript": PAGE, "blocking": TCP}, refused=ONLY_TCP),
    Row(
        "a stream of `http://`",
        _http,
        JS_HTTP,
        says={
            "trio": "yes, `penstock.subscribe`",
            "asyncio": "yes, `aio.subscribe`",
            "blocking": "no; [with curl](../how-to/http.md), or any library for HTTP",
            "javascript": "yes, `stream` of `http.js`",
        },
        refused=ONLY_TCP,
    ),
    Row(
        "`memory://`",
        _memory,
        says={"blocking": TCP, "javascript": PAGE},
        refused=ONLY_TCP,
    ),
    Row("`exec:`", _exec, says={"blocking": TCP, "javascript": PAGE}, refused=ONLY_TCP),
    Row("RS.io", _over("tcp"), _js_over("urls.ws")),
    Row(
        "ReactiveSocket",
        _over("reactivesocket"),
        says={"javascript": "no; RS.io at the same server"},
    ),
    *(
        Row(
            f"messages of RS.io in `{name}`",
            _over("tcp", encoding=name, registry=build_registry()),
            says={"javascript": "no; the messages that every server reads"},
        )
        for name in ("msgpack", "protobuf")
    ),
    Row("bytes", _typed("raw", [b"bytes"]), _js_typed("raw", "{}", "[bytes]")),
    Row(
        "JSON",
        _typed("numbers", list(range(ELEMENTS)), serializer="json"),
        _js_typed("numbers", '{ type: "json" }', "count"),
    ),
    Row(
        "dataclasses and other types",
        _typed("quotes", [Quote("EURUSD", 108)], type=Quote),
        _js_typed("quotes", '{ type: "json" }', '[{ name: "EURUSD", price: 108 }]'),
        says={"javascript": "objects of JSON"},
    ),
    Row(
        "elements in `msgpack`",
        _typed("msgpack", [[1, 2]], serializer="msgpack"),
        _js_typed("msgpack", "{ type: (bytes) => [...bytes] }", "[[0x92, 1, 2]]"),
        says={"javascript": "with a decoder of the page"},
    ),
    Row(
        "elements in `protobuf`",
        _typed("protobuf", [StringValue(value="hello")], type=StringValue, serializer="protobuf"),
        _js_typed("protobuf", "{ type: (bytes) => bytes.length }", "[7]"),
        says={"javascript": "with a decoder of the page"},
    ),
    Row(
        "elements in `arrow`",
        _typed("arrow", [pa.RecordBatch.from_pydict({"price": [1, 2, 3]})], serializer="arrow"),
        _js_typed("arrow", "{ type: (bytes) => bytes.length > 0 }", "[true]"),
        says={"javascript": "with a decoder of the page"},
    ),
    Row("lists of elements", _batches, says={"javascript": "no; one by one"}),
    Row("elements of one size as memory", _buffers, says={"javascript": "no; one by one"}),
    Row("the program requests each element", _by_hand, JS_BY_HAND),
    Row("from a position, to a position", _places, JS_PLACES),
    Row("the position of a time", _time, JS_TIME),
    Row(
        "a deadline for a read",
        _deadline,
        JS_DEADLINE,
        says={
            "trio": "`trio.fail_after`",
            "asyncio": "`asyncio.timeout`",
            "blocking": "`timeout=`",
            "javascript": "`AbortSignal.timeout`, for the stream",
        },
    ),
    Row("statistics", _statistics, says={"javascript": "no; those of the server"}),
    Row("a request by name", _request, JS_REQUEST),
    Row(
        "a deadline for a request",
        _request_in_time,
        says={"javascript": "no; ends with the connection"},
    ),
    Row(
        "requests without a name: `request_response` and others",
        _data,
        says={
            "asyncio": "no; a request by name, or [through trio](../how-to/asyncio.md#calls-that-cross)",
            "blocking": "no; a request by name",
            "javascript": "no; a request by name",
        },
        refused=frozenset({"asyncio", "blocking"}),
    ),
    Row(
        "the server reads what the client publishes",
        _publish,
        says={"javascript": "no; a request by name"},
    ),
    Row(
        "the server makes requests of the client",
        _answer,
        says={"blocking": "no; a stream that the server reads", "javascript": "no"},
        refused=ONLY_TCP,
    ),
    Row(
        "write to [`penstock.receive`](../how-to/receive.md)",
        _write,
        says={"javascript": "no; a request by name"},
    ),
    Row(
        "credentials for the server", _credentials, JS_CREDENTIALS, says={"javascript": "`bearer`"}
    ),
    Row("examine the server", _examine, says={"javascript": "no; the certificate of `wss://`"}),
    Row("a lost connection is made again", _reconnect, JS_RECONNECT),
    Row(
        "a server that [drains](../how-to/deploy.md#a-rolling-restart) is left at once",
        _follow,
        says={"javascript": "no; the next server when this one has left"},
    ),
    Row(
        "a stream of a log goes on where it was",
        _go_on,
        JS_GO_ON,
        says={"trio": "yes, `penstock.subscribe`"},
    ),
    Row(
        "every stream goes on: `resume=True`",
        _resume,
        says={"blocking": "no; `reconnect` and a log", "javascript": "no; `reconnect` and a log"},
        refused=ONLY_TCP,
    ),
)


# --- the tests


@pytest.mark.parametrize("client", SHELLS)
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.feature)
def test_each_cell_of_python(row: Row, client: str, world: World) -> None:
    """The trial passes, or the client refuses the call and the cell says what to use."""
    shell = SHELLS[client]()
    if client in row.refused:
        assert row.cell(client).startswith("no")
        with pytest.raises((UsageError, AttributeError)):
            shell.run(row.trial(shell, world))
    else:
        assert not row.cell(client).startswith("no")
        shell.run(row.trial(shell, world))


def test_each_cell_of_javascript(world: World, tmp_path: Path) -> None:
    """All trials in one program; a client without such a call says what to use."""
    trials = {row.feature: row.javascript for row in ROWS if row.javascript is not None}
    for row in ROWS:
        assert (row.javascript is None) == row.cell("javascript").startswith("no"), row.feature
    urls = {**world.urls, "relay": world.relays["ws"].url}
    urls = {
        name: f"{url}/" if name.endswith(("ws", "wss", "relay")) else url
        for name, url in urls.items()
    }
    program = f"""
        import {{ connect as connectTo }} from {json.dumps(str(CLIENT / "penstock.js"))};
        import {{ stream }} from {json.dumps(str(CLIENT / "http.js"))};
        import {{ deepStrictEqual as equal }} from "node:assert";
        const connect = (url, options) => connectTo(url, {{ limits: {{ handshake: 300_000 }}, ...options }});
        const all = async (elements) => {{ const got = []; for await (const each of elements) got.push(each); return got; }};
        const urls = {json.dumps(urls)}, count = [...Array({ELEMENTS}).keys()], bytes = new TextEncoder().encode("bytes");
        const failed = {{}};
        {"".join(f"try {{ {body} }} catch (error) {{ failed[{json.dumps(name)}] = String(error); }}" for name, body in trials.items())}
        console.log(JSON.stringify(failed));"""
    path = tmp_path / "trials.mjs"
    path.write_text(program, encoding="utf-8")
    done = subprocess.run(
        [node(), *node_websocket(), str(path)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "NODE_EXTRA_CA_CERTS": str(world.folder / "ca.pem")},
    )
    assert json.loads(done.stdout) == {}


def test_the_page_shows_the_table() -> None:
    """Word for word. With PENSTOCK_WRITE_OUT set, the test writes it."""
    columns = (*SHELLS, "javascript")
    names = ("`penstock`", "`penstock.aio`", "`penstock.blocking`", "JavaScript")
    lines = [
        "| | " + " | ".join(names) + " |",
        "|---|" + "---|" * len(names),
        *(f"| {row.feature} | " + " | ".join(map(row.cell, columns)) + " |" for row in ROWS),
    ]
    table = "\n".join(lines) + "\n"
    if "PENSTOCK_WRITE_OUT" in os.environ:
        TABLE.write_text(table, encoding="utf-8")
    assert TABLE.read_text(encoding="utf-8") == table
