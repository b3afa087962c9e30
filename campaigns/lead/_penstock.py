"""Producers and readers with penstock, over each transport, in each encoding, on each loop, and with
something between the two.

The options: the `scheme`, the `encoding` of the messages, the `serializer` of the elements, `loop` and
`server_loop`, `via`, `demand` (without it that of penstock).
"""

import base64
import json
import os
import shlex
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Final

import trio

import penstock
from campaigns.lead._contenders import program as program_of
from campaigns.lead._side import TAKEN, Side
from penstock import aio, blocking, ops
from penstock.spi import Tls, TransportOptions, build_registry

NAME: Final = "elements"
NGINX: Final = """
daemon off; {user} pid {folder}/pid; error_log {folder}/error.log; events {{}}
http {{
  client_body_temp_path {folder}/1; proxy_temp_path {folder}/2; fastcgi_temp_path {folder}/3;
  uwsgi_temp_path {folder}/4; scgi_temp_path {folder}/5; access_log off;
  server {{
    listen 127.0.0.1:{port};
    location / {{
      proxy_pass http://127.0.0.1:{target};
      proxy_http_version 1.1;
      proxy_set_header Host $http_host;
      proxy_set_header Upgrade $http_upgrade;
      proxy_set_header Connection {connection};
      proxy_read_timeout 1h;
    }}
  }}
}}
"""


# --- elements


def _as_text(element: bytes) -> str:
    return base64.b64encode(element[: max(len(element) * 3 // 4, 8)]).decode()


def _as_json(element: bytes) -> dict[str, Any]:
    return {"number": int.from_bytes(element[:8], "big"), "data": _as_text(element)}


def _as_msgpack(element: bytes) -> dict[str, Any]:
    return {"number": int.from_bytes(element[:8], "big"), "data": element}


def _as_protobuf(element: bytes) -> Any:
    from google.protobuf.wrappers_pb2 import BytesValue

    return BytesValue(value=element)


def _as_arrow(element: bytes) -> Any:
    import pyarrow as pa

    return pa.record_batch({"number": [int.from_bytes(element[:8], "big")], "data": [element]})


FORMS: Final[dict[str, Callable[[bytes], Any]]] = {
    "bytes": lambda element: element,
    "text": _as_text,
    "json": _as_json,
    "msgpack": _as_msgpack,
    "protobuf": _as_protobuf,
    "arrow": _as_arrow,
}


async def _formed(side: Side) -> AsyncGenerator[Any, None]:
    """Yield the elements in the form that the serializer takes."""
    form = FORMS[side.options.get("serializer", "bytes")]
    elements = side.elements()
    try:
        async for element in elements:
            yield form(element)
    finally:
        await elements.aclose()


def _five_operators(source: Any) -> Any:
    return penstock.pipe(
        source,
        ops.map(lambda element: element),
        ops.filter(lambda element: element is not None),
        ops.scan(lambda _, element: element, b""),
        ops.tap(lambda _: None),
        ops.skip(0),
    )


# --- the producer


def _service(side: Side, source: Callable[[], Any] | None = None) -> Any:
    on_asyncio = side.options.get("server_loop") == "asyncio"
    service = aio.Service() if on_asyncio else penstock.Service()
    settings: dict[str, Any] = {}
    if (serializer := side.options.get("serializer")) is not None:
        settings["serializer"] = serializer

    @service.publisher(NAME, **settings)
    def published() -> Any:
        if source is not None:
            return source()
        return _five_operators(_formed(side)) if side.options.get("operators") else _formed(side)

    return service


def _listening(side: Side) -> tuple[str, TransportOptions]:
    """Return the URL to listen at, and the options."""
    scheme = side.options["scheme"]
    url = f"{scheme}://" + (f"{side.folder}/socket" if scheme == "unix" else "127.0.0.1:0")
    if scheme not in {"tls", "wss"}:
        return url, TransportOptions()
    import trustme

    authority = trustme.CA()
    authority.cert_pem.write_to_path(side.folder / "authority.pem")
    certificate = side.folder / "server.pem"
    issued = authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem
    issued.write_to_path(certificate)
    return url, TransportOptions(tls=Tls(certificate=certificate))


def _url(address: object) -> str:
    """Return the URL of the publisher at a server."""
    text = str(address)
    if text.startswith("http:"):
        return f"{text}/p/{NAME}"
    return f"{text}#{NAME}" if text.startswith("unix:") else f"{text}/{NAME}"


async def serve_penstock(side: Side) -> None:
    """Serve on trio."""
    url, options = _listening(side)
    async with AsyncExitStack() as stack:
        service = _service(side)
        server = await stack.enter_async_context(penstock.serve(service, url, options=options))
        address = _url(server.addresses[0])
        if (via := side.options.get("via")) is not None:
            address = await stack.enter_async_context(VIA[via](side, address))
        await side.serve_forever(address)


async def serve_penstock_on_asyncio(side: Side) -> None:
    """Serve on asyncio."""
    url, options = _listening(side)
    async with aio.serve(_service(side), url, options=options) as server:
        await side.serve_forever(_url(server.addresses[0]))


async def serve_asgi(side: Side) -> None:
    """Serve in a site of Starlette under uvicorn."""
    from penstock_http import AsgiApp
    from starlette.applications import Starlette
    from starlette.routing import Mount

    from campaigns.lead._network import _serve_site

    class Sited(Side):
        async def serve_forever(self, address: object) -> None:
            await super().serve_forever(f"{address}/streams/p/{NAME}")

    sited = Sited.__new__(Sited)
    vars(sited).update(vars(side))
    await _serve_site(sited, Starlette(routes=[Mount("/streams", AsgiApp(_service(side)))]))


# --- what is between them


@asynccontextmanager
async def _relay(_side: Side, address: str) -> AsyncGenerator[str, None]:
    """Forward the bytes of connections, in a task."""
    place, _, name = address.removeprefix("tcp://").partition("/")
    host, _, port = place.partition(":")

    async def forward(source: trio.SocketStream, target: trio.SocketStream) -> None:
        async for data in source:
            await target.send_all(data)
        await target.send_eof()

    async def connected(reader: trio.SocketStream) -> None:
        server = await trio.open_tcp_stream(host, int(port))
        try:
            async with reader, server, trio.open_nursery() as nursery:
                nursery.start_soon(forward, reader, server)
                nursery.start_soon(forward, server, reader)
        except* (trio.BrokenResourceError, trio.ClosedResourceError):
            pass

    async with trio.open_nursery() as nursery:
        [listener] = await trio.open_tcp_listeners(0, host="127.0.0.1")
        nursery.start_soon(trio.serve_listeners, connected, [listener])
        yield f"tcp://127.0.0.1:{listener.socket.getsockname()[1]}/{name}"
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def _penstock_between(side: Side, address: str) -> AsyncGenerator[str, None]:
    """Publish in a second server what a first one publishes."""
    service = _service(side, lambda: penstock.remote(address))
    async with penstock.serve(service, "tcp://127.0.0.1:0") as server:
        yield _url(server.addresses[0])


@asynccontextmanager
async def _nginx(side: Side, address: str) -> AsyncGenerator[str, None]:
    """Run nginx as a reverse proxy."""
    scheme, _, rest = address.partition("://")
    place, _, name = rest.partition("/")
    with trio.socket.socket() as sock:
        await sock.bind(("127.0.0.1", 0))
        port = sock.getsockname()[1]
    configuration = side.folder / "nginx.conf"
    text = NGINX.format(
        user="user root;" if os.geteuid() == 0 else "",
        folder=side.folder,
        port=port,
        target=place.rpartition(":")[2],
        connection="upgrade" if scheme == "ws" else '""',
    )
    configuration.write_text(text)
    program = program_of("nginx") or "nginx"
    log = side.folder / "error.log"
    with subprocess.Popen([program, "-c", str(configuration), "-e", str(log)]) as process:  # noqa: ASYNC220  # before anything is measured
        while process.poll() is None:
            try:
                await (await trio.open_tcp_stream("127.0.0.1", port)).aclose()
            except OSError:
                await trio.sleep(0.02)
            else:
                break
        yield f"{scheme}://127.0.0.1:{port}/{name}"
        process.terminate()


VIA: Final = {"relay": _relay, "penstock": _penstock_between, "nginx": _nginx}


# --- the reader


def _reading(side: Side) -> dict[str, Any]:
    """Return the options of a subscription."""
    found: dict[str, Any] = {}
    if "demand" in side.options:
        found["demand"] = side.options["demand"]
    if (serializer := side.options.get("serializer")) is not None:
        found["serializer"] = serializer
    if serializer == "protobuf":
        from google.protobuf.wrappers_pb2 import BytesValue

        found["type"] = BytesValue
    return found


def _connecting(side: Side) -> dict[str, Any]:
    """Return the options of a connection."""
    found: dict[str, Any] = {}
    if (encoding := side.options.get("encoding")) is not None:
        found["encoding"] = encoding
    if side.options["scheme"] in {"tls", "wss"}:
        tls = Tls(authorities=side.folder / "authority.pem")
        found["options"] = TransportOptions(tls=tls)
    return found


async def _take_all(side: Side, stream: Any) -> None:
    for _ in range(TAKEN):
        await anext(stream)
        side.take()
    await side.stop()


async def read_penstock(side: Side) -> None:
    """Read on trio."""
    await side.begin()
    options = {**_reading(side), **_connecting(side)}
    async with penstock.subscribe(side.address, **options) as stream:
        await _take_all(side, stream)
    await side.left()


async def read_penstock_on_asyncio(side: Side) -> None:
    """Read on asyncio; over HTTP it is a stream without a connection of its own."""
    await side.begin()
    if side.address.startswith("http:"):
        async with aio.subscribe(side.address, **_reading(side)) as stream:
            await _take_all(side, stream)
    else:
        server = side.address.removesuffix(f"#{NAME}").removesuffix(f"/{NAME}")
        connecting = {**_connecting(side), "registry": build_registry()}
        async with (
            aio.connect(server, **connecting) as peer,
            peer.subscribe(NAME, **_reading(side)) as stream,
        ):
            await _take_all(side, aiter(stream))
    await side.left()


def read_penstock_blocking(side: Side) -> None:
    """Read without a loop."""
    side.say("ready")
    side.wait()
    server = side.address.removesuffix(f"#{NAME}").removesuffix(f"/{NAME}")
    connecting = {**_connecting(side), "registry": build_registry()}
    with blocking.connect(server, **connecting) as peer:
        with peer.subscribe(NAME, **_reading(side)) as stream:
            elements = iter(stream)
            for _ in range(TAKEN):
                next(elements)
                side.take()
            side.say("stopped")
            side.wait()
    side.say("left")


# --- both in one program, or one the child of the other


async def both_inside(side: Side) -> None:
    """A stream in one program."""
    await side.begin()
    source = _formed(side)
    opened = _five_operators(source) if side.options.get("operators") else source
    async with penstock.subscribe(opened, **_reading(side)) as stream:
        await _take_all(side, stream)
    await side.left()


async def both_in_memory(side: Side) -> None:
    """A server and a client in one program: ``memory://``."""
    await side.begin()
    url = "memory://lead"
    async with penstock.serve(_service(side), url):
        async with penstock.subscribe(f"{url}/{NAME}", **_reading(side)) as stream:
            await _take_all(side, stream)
    await side.left()


async def both_in_memory_on_asyncio(side: Side) -> None:
    """The same, on asyncio."""
    await side.begin()
    url = "memory://lead"
    async with (
        aio.serve(_service(side), url),
        aio.connect(url) as peer,
        peer.subscribe(NAME, **_reading(side)) as stream,
    ):
        await _take_all(side, aiter(stream))
    await side.left()


def _child(side: Side) -> str:
    arguments = [str(side.folder), str(side.size), str(side.most), '{"loop": "trio"}']
    program = [sys.executable, "-m", "campaigns.lead._side", "_penstock.serve_pipe", *arguments]
    return f"exec:{shlex.join(program)}"


async def serve_pipe(side: Side) -> None:
    """Serve standard output and input: the child of the reader."""
    async with penstock.serve(_service(side), "pipe:") as server:
        await server.wait_over()
    os._exit(0)  # the reader waits for the end of its child


async def both_exec(side: Side) -> None:
    """The producer is a child of the reader: ``exec:``."""
    await side.begin()
    async with penstock.subscribe(f"{_child(side)}#{NAME}", **_reading(side)) as stream:
        await _take_all(side, stream)
    await side.left()


async def both_exec_on_asyncio(side: Side) -> None:
    """The same, on asyncio."""
    await side.begin()
    async with (
        aio.connect(_child(side)) as peer,
        peer.subscribe(NAME, **_reading(side)) as stream,
    ):
        await _take_all(side, aiter(stream))
    await side.left()


async def both_browser(side: Side) -> None:
    """A page in Chromium reads over a WebSocket. Chromium is a child of the producer."""
    from tests.browser._chromium import run_chromium
    from tests.browser._pages import serve_pages

    demand = f"{{demand: {side.options['demand']}}}" if "demand" in side.options else "{}"
    async with serve_pages() as origin, run_chromium() as browser:
        extra = TransportOptions(extra={"ws.origins": origin})
        async with penstock.serve(_service(side), "ws://127.0.0.1:0", options=extra) as server:
            page = await browser.open(f"{origin}/")
            await side.begin()
            got = await page.run(
                f"""
                const {{ connect }} = await import("/penstock.js");
                window.connection = await connect("{server.addresses[0]}/");
                window.stream = window.connection.stream("{NAME}", {demand})[Symbol.asyncIterator]();
                let got = 0;
                while (got < {TAKEN}) {{ await window.stream.next(); got += 1; }}
                return got;"""
            )
            for _ in range(got):
                side.take()
            await side.stop()
            await page.run("await window.stream.return(); await window.connection.close();")
            await side.left()


def both_spark(side: Side) -> None:
    """A query of Spark reads ten rows, and its program works on them. Java, and the server, are
    children of the reader's program.
    """
    import threading

    from penstock_spark import session

    options = {**side.options, "scheme": "tcp", "loop": "trio"}
    arguments = [str(side.folder), str(side.size), str(side.most), json.dumps(options)]
    program = [sys.executable, "-m", "campaigns.lead._side", "_penstock.serve_penstock", *arguments]
    with subprocess.Popen(
        program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        url = server.stdout.readline().split()[1].removesuffix(f"/{NAME}")
        settings = {"spark.ui.enabled": "false", "spark.driver.memory": "1g"}
        spark = session("local[2]", settings=settings)
        reading = spark.readStream.format("penstock").options(
            stream=NAME,
            delivery="atMostOnce",
            maxElementsPerTrigger=TAKEN,
            longPollMs=60_000,  # a batch waits so long for its elements
        )
        if "demand" in side.options:
            reading = reading.option("demandWindow", side.options["demand"])
        side.say("ready")
        side.wait()
        has_taken, may_leave = threading.Event(), threading.Event()

        def work(rows: Any, _batch: int) -> None:
            for row in rows.collect():
                side.take(row.value)
            if side.counters[16] >= TAKEN:
                has_taken.set()
                may_leave.wait()

        query = reading.load(url).writeStream.foreachBatch(work).start()
        has_taken.wait()
        side.say("stopped")
        side.wait()
        may_leave.set()
        query.stop()
        side.say("left")
        side.wait()
