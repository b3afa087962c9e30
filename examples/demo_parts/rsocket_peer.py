"""Scene: RSocket with rsocket-py, as a client of penstock and as its server."""

import json
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from importlib.util import find_spec
from pathlib import Path

import trio

import penstock
from demo_parts.screen import Finding, Gauge, Screen

TITLE = "RSocket, with rsocket-py"
STORY = """\
A program on rsocket-py asks this one over RSocket 1.0, then reads a stream: it requests 1, 7, 2 and 30 elements, and stops.
Then the other way around: rsocket-py serves, and penstock reads with demand=1."""
REQUESTED = 40  # 1 + 7 + 2 + 30
READ = 10
PROGRAM = Path(__file__).with_name("rsocket_python.py")


def missing() -> str:
    """Return why this scene cannot be played, or an empty text."""
    lacking = [name for name in ("rsocket", "penstock_rsocket") if find_spec(name) is None]
    return f"not installed: {', '.join(lacking)}" if lacking else ""


@asynccontextmanager
async def _python(*arguments: str) -> AsyncIterator[trio.abc.ReceiveStream]:
    """Run rsocket-py for the length of a block. The value is what it prints."""
    command = [sys.executable, str(PROGRAM), *arguments]
    program = await trio.lowlevel.open_process(command, stdout=subprocess.PIPE)
    if program.stdout is None:
        raise RuntimeError("the program was started with a pipe")
    try:
        yield program.stdout
    finally:
        program.kill()
        with trio.CancelScope(shield=True):
            await program.wait()  # a killed program ends


async def play(screen: Screen) -> list[Finding]:
    """Be a server of rsocket-py, and then its client."""
    doing = "rsocket-py reads"

    def look() -> Iterator[Gauge]:
        yield Gauge("now", doing)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(screen.watch, look)
        findings = await _serve()
        doing = "penstock reads"
        findings.append(await _read())
        nursery.cancel_scope.cancel()
    return findings


async def _serve() -> list[Finding]:
    made = 0
    service = penstock.Service()

    @service.publisher("numbers", serializer="text")
    async def numbers() -> AsyncIterator[str]:
        nonlocal made
        while True:
            made += 1
            yield str(made - 1)

    @service.request("made", serializer="text")
    async def count() -> str:
        return str(made)

    @service.request("upper", serializer="text")
    async def upper(payload: str) -> str:
        return payload.upper()

    async with (
        penstock.serve(service, "rsocket+tcp://127.0.0.1:0") as server,
        _python("client", str(server.addresses[0].port)) as output,
    ):
        printed = b"".join([bytes(data) async for data in output])
    found = json.loads(printed or b"{}")
    got, seen = found.get("got", []), found.get("made", -1)
    return [
        Finding(
            "rsocket-py gets an answer",
            f"upper(abc) is {found.get('upper')}",
            shown=found.get("upper") == "ABC",
        ),
        Finding(
            "rsocket-py gets the elements that it requests, and no more are made",
            f"{len(got)} elements for demands of 1, 7, 2 and 30; {seen} made",
            shown=got == [str(number) for number in range(REQUESTED)] and seen == REQUESTED,
        ),
    ]


async def _read() -> Finding:
    async with _python("server") as output:
        lines = _numbers_in(output)
        url = f"rsocket+tcp://127.0.0.1:{await anext(lines)}/numbers"
        async with penstock.subscribe(url, demand=1) as stream:
            got = [int(bytes(await anext(stream))) for _ in range(READ)]
            made = 0
            while made < READ:
                made = await anext(lines)
    return Finding(
        "penstock reads from rsocket-py with demand=1, which stops where the reader stops",
        f"{len(got)} read in order, {made} made",
        shown=got == list(range(READ)) and made <= READ + 1,
    )


async def _numbers_in(output: trio.abc.ReceiveStream) -> AsyncIterator[int]:
    rest = b""
    while data := await output.receive_some():
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            yield int(line)
