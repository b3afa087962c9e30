"""Applications under the web servers that people use, started as programs on real sockets."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import trio
from _free_port import free_port
from _relay import relaying

import penstock

HERE = Path(__file__).parent
EXAMPLES = HERE.parent / "examples"
HANGS_AFTER = 300.0


def python(*arguments: str) -> list[str]:
    return [sys.executable, "-m", *arguments]


def at(port: int) -> str:
    return f"127.0.0.1:{port}"


def uvicorn(port: int) -> list[str]:
    return python("uvicorn", "--port", str(port))


def impatient_uvicorn(port: int) -> list[str]:
    return python("uvicorn", "--port", str(port), "--timeout-graceful-shutdown", "1")


def hypercorn(port: int) -> list[str]:
    return python("hypercorn", "--bind", at(port))


def granian(port: int) -> list[str]:
    return python("granian", "--interface", "asgi", "--port", str(port))


def daphne(port: int) -> list[str]:
    return python("daphne", "-p", str(port))


def hypercorn_on_trio(port: int) -> list[str]:
    return python("hypercorn", "--worker-class", "trio", "--bind", at(port))


def anycorn_on_trio(port: int) -> list[str]:
    return python("anycorn", "--worker-class", "trio", "--bind", at(port))


SERVERS = [uvicorn, hypercorn, granian, daphne, hypercorn_on_trio, anycorn_on_trio]


class Program:
    """A web server."""

    def __init__(self, process: trio.Process, port: int, below: str) -> None:
        self.process = process
        self.port = port
        self.base = f"http://{at(port)}{below}"
        self.text = ""
        self.streams: list[trio.SocketStream] = []
        self._more = trio.Event()

    async def read(self) -> None:
        """Keep what it prints, until it ends."""
        assert self.process.stdout is not None
        async for data in self.process.stdout:
            self.text += data.decode()
            self._more.set()
            self._more = trio.Event()

    async def said(self, text: str, *, times: int = 1) -> None:
        """Wait until it has printed `text` this number of times."""
        while self.text.count(text) < times:
            await self._more.wait()

    async def ask(self, line: str, header: str = "") -> "Response":
        """Send a request, and return the response whose head has come."""
        stream = await trio.open_tcp_stream("127.0.0.1", self.port)
        self.streams.append(stream)
        method, path = line.split(" ")
        url = path if path.startswith("http://") else self.base + path
        target = url.partition(at(self.port))[2]
        head = f"{method} {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{header}"
        await stream.send_all(f"{head}Content-Length: 0\r\n\r\n".encode())
        response = Response(stream)
        await response.read_until(b"\r\n\r\n")
        return response

    async def subscribe(self, name: str, demand: int) -> str:
        """Return the path of a new subscription."""
        created = await self.ask(f"PUT /p/{name}?request={demand}")
        return "/" + created.header("location").replace("../", "")

    async def serves(self) -> None:
        """Wait until it accepts connections."""
        while True:
            try:
                await self.ask("GET /healthz")
            except OSError:
                await trio.sleep(0.05)  # for a program that starts
            else:
                return


class Response:
    """The bytes of a response that have come."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self.stream = stream
        self.data = b""

    async def read_until(self, end: bytes) -> bytes:
        while end not in self.data:
            more = await self.stream.receive_some()
            assert more, self.data
            self.data += more
        return self.data

    async def read_all(self) -> bytes:
        """Return everything, up to the end of the connection, also if it is cut."""
        try:
            async for more in self.stream:
                self.data += more
        except trio.BrokenResourceError:
            pass
        return self.data

    @property
    def status(self) -> int:
        return int(self.data.split(b" ")[1])

    def header(self, name: str) -> str:
        head = self.data.partition(b"\r\n\r\n")[0].decode().split("\r\n")[1:]
        return {key.lower(): value for key, _, value in (each.partition(": ") for each in head)}[
            name
        ]


@asynccontextmanager
async def started(
    server: Callable[[int], list[str]],
    site: str,
    *,
    below: str = "/streams",
    loop: str = "",
    program: str = "asgi_sites:site",
    cwd: Path = HERE,
    serves: bool = True,
    lost: str = "keep",
) -> AsyncIterator[Program]:
    """Start a web server that has `site` of `asgi_sites`, or another `program`."""
    command = server(port := free_port())
    for needed in (command[2], site):
        if needed != "whole" and find_spec(needed) is None:
            pytest.skip(f"needs {needed}")
    environment = {
        **os.environ,
        "PENSTOCK_ASGI_LOOP": loop or ("trio" if "trio" in server.__name__ else "asyncio"),
        "PENSTOCK_ASGI_SITE": site,
        "PENSTOCK_ASGI_LOST": lost,
        "PYTHONUNBUFFERED": "1",
    }
    with trio.fail_after(HANGS_AFTER):
        async with trio.open_nursery() as nursery:
            process = await trio.lowlevel.open_process(
                [*command, program],
                cwd=cwd,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # granian starts workers
                env=environment,
            )
            running = Program(process, port, below)
            nursery.start_soon(running.read)
            try:
                if serves:
                    await running.serves()
                yield running
            except BaseException as error:
                error.add_note(running.text)
                raise
            finally:
                with suppress(ProcessLookupError):  # it has ended, with its workers
                    os.killpg(process.pid, signal.SIGKILL)
                with trio.CancelScope(shield=True):
                    await process.wait()
                    for stream in running.streams:
                        await trio.aclose_forcefully(stream)


async def interrupted(program: Program) -> int:
    """Press Ctrl-C, and return the exit status."""
    program.process.send_signal(signal.SIGINT)
    return await program.process.wait()


@pytest.mark.parametrize("server", SERVERS, ids=lambda server: server.__name__)
async def test_the_streams_are_served(server: Any) -> None:
    """In a site that begins with the first request: a client of Penstock reads 2,500 elements, by
    requests and over WebSocket; a page that has gone cancels its stream. Ctrl-C ends the program.
    """
    async with started(server, "starlette") as program:
        async with penstock.subscribe(
            f"{program.base}/p/numbers/2500", serializer="json"
        ) as stream:
            assert [number async for number in stream] == list(range(2500))
        for protocol in ("", "reactivesocket+"):
            url = f"{protocol}{program.base.replace('http', 'ws')}/#"
            async with (
                penstock.connect(url) as peer,
                peer.subscribe("numbers/2500", serializer="json") as stream,
            ):
                assert [number async for number in stream] == list(range(2500))
        path = await program.subscribe("endless", 5)
        events = await program.ask(f"GET {path}/events?text=1")
        await events.read_until(b"id: 0\ndata: 0\n\n")
        await program.said("endless waits")
        await events.stream.aclose()
        poll = await program.ask(f"POST {path}/cancel")
        assert poll.status == 200
        await program.said("endless has ended")
        assert await interrupted(program) in (0, -signal.SIGINT, 128 + signal.SIGINT, 1)
    assert "Traceback" not in program.text


@pytest.mark.parametrize("server", SERVERS, ids=lambda server: server.__name__)
async def test_a_websocket_that_is_cut_is_resumed(server: Any) -> None:
    """With `resume` on both sides all elements come, each once, over three connections."""
    async with started(server, "starlette") as program, relaying(program.port) as relay:
        got = []
        async with (
            penstock.connect(f"ws://{at(relay.port)}/streams/", resume=True) as peer,
            peer.subscribe("numbers/2500", serializer="json", demand=16) as stream,
        ):
            async for number in stream:
                got.append(number)
                if number in (500, 1500):
                    relay.cut()
        assert got == list(range(2500))
        assert relay.connections == 3
        await interrupted(program)
    assert "Traceback" not in program.text


@pytest.mark.parametrize("server", SERVERS, ids=lambda server: server.__name__)
async def test_a_closed_tab_ends_its_stream(server: Any) -> None:
    """With ``http.lost=end``, without a beacon: the web server tells that the page has gone, and the
    generator ends at once. So it does for a streamed batch. A later request is told why.
    """
    async with started(server, "starlette", lost="end") as program:
        for number, (method, action, header) in enumerate(
            (
                ("GET", "/events?text=1", ""),
                ("PUT", "", "X-Rsio-Delivery: stream\r\n"),
            ),
            1,
        ):
            path = await program.subscribe("endless", 5)
            tab = await program.ask(f"{method} {path}{action}", header)
            await program.said("endless waits", times=number)
            await tab.stream.aclose()
            await program.said("endless has ended", times=number)
            later = await program.ask(f"PUT {path}")
            assert b"http.lost=end" in await later.read_all()
        await interrupted(program)


@pytest.mark.parametrize(
    "server", [each for each in SERVERS if each is not daphne], ids=lambda server: server.__name__
)
async def test_a_lifespan_of_the_site_drains(server: Any) -> None:
    """The application is the whole site. Ctrl-C ends a stream that no client reads, and its
    generator has ended before the program.
    """
    async with started(server, "whole", below="") as program:
        path = await program.subscribe("endless", 5)
        poll = await program.ask(f"PUT {path}")
        assert (await poll.read_all()).endswith(b"0")
        await program.said("endless waits")
        await interrupted(program)
    assert "endless has ended" in program.text
    assert "Traceback" not in program.text


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
@pytest.mark.parametrize(
    ("framework", "example"), [("fastapi", "tokens:site"), ("django", "django_site:application")]
)
async def test_an_example_prints_its_output(framework: str, example: str) -> None:
    """FastAPI: a page that is closed stops the model, and so does one that does not come back; a
    second page reads the same answer from a position. Django: a view, and a stream of the database.

    Set PENSTOCK_WRITE_OUT to store the present output.
    """
    script = EXAMPLES / f"{example.partition(':')[0]}.sh"
    stored = script.with_suffix(".out")
    async with started(uvicorn, framework, below="", program=example, cwd=EXAMPLES) as program:
        base = f"http://{at(program.port)}"
        done = await trio.run_process(["sh", str(script), base], capture_stdout=True)
        if "PENSTOCK_WRITE_OUT" in os.environ:
            stored.write_bytes(done.stdout)
        assert done.stdout.decode() == stored.read_text()
        await interrupted(program)
    assert "Traceback" not in program.text


async def test_an_impatient_uvicorn_ends_open_streams() -> None:
    """With a bound for its shutdown. The generator has ended before the program."""
    async with started(impatient_uvicorn, "fastapi") as program:
        path = await program.subscribe("endless", 5)
        events = await program.ask(f"GET {path}/events?text=1")
        await events.read_until(b"id: 0\ndata: 0\n\n")
        await program.said("endless waits")
        await interrupted(program)
        await events.read_all()
    assert "endless has ended" in program.text
    assert "drained" in program.text


async def test_a_second_interrupt_ends_uvicorn() -> None:
    """While a page reads events, in a site whose streams began with the first request."""
    async with started(uvicorn, "starlette") as program:
        path = await program.subscribe("endless", 5)
        events = await program.ask(f"GET {path}/events?text=1")
        await events.read_until(b"id: 0\ndata: 0\n\n")
        await program.said("endless waits")
        program.process.send_signal(signal.SIGINT)
        await program.said("Waiting for connections to close")
        await interrupted(program)
    assert "endless has ended" in program.text


async def test_a_site_that_cannot_serve_does_not_start() -> None:
    """The whole site has a service for the other loop: uvicorn shows what to write, and ends."""
    async with started(uvicorn, "whole", below="", loop="trio", serves=False) as program:
        assert await program.process.wait() == 3
    assert "Make a penstock.aio.Service()" in program.text
