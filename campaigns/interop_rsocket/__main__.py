"""Living peers of RSocket 1.0, each as a server and as a client of penstock.

`python -m campaigns interop_rsocket` prints a table: a row for each feature, a column for each peer
in each role and over each transport. It needs rsocket-py; Java 17 and Maven for rsocket-java;
Node.js and the packages of its row in campaigns/table.toml for rsocket-js. With ``--short`` only
rsocket-py is asked. It exits with 1 if a cell differs from what `EXPECTED` says.

It also cuts ``--cuts`` connections to rsocket-java with resume, in each role, and exits with 1 if an
element was lost or repeated.

Every peer has the same routes: ``echo`` answers with the data, ``fail`` with an error "boom",
``seen`` with the number of bytes of the last message, ``type`` with the data type of the SETUP,
``count/N`` (``count.N`` of peers) is a stream of N numbers, ``double`` a channel that repeats each
element in itself.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import attrs
import trio
from penstock_rsocket import SetupData

import penstock
from campaigns.interop_rsocket import _resume
from penstock import Credentials, PublisherFailed, Source
from penstock.spi import PeerIdentity

HERE = Path(__file__).parent
ROWS = (
    "request-response",
    "fragments",
    "error",
    "fire-and-forget",
    "stream",
    "cancel",
    "channel",
    "setup",
)
KINDS = [(role, scheme) for scheme in ("tcp", "ws") for role in ("server", "client")]
EXPECTED: dict[tuple[str, str], str] = {
    (f"rsocket-js server, {scheme}", "setup"): repr(
        PublisherFailed("a server is not told the types")
    )
    for scheme in ("tcp", "ws")
}
"""The cells in which a peer lacks something or does it in another way, with what it does."""


@attrs.frozen
class Peer:
    """A library, in one role, over one transport."""

    library: str
    role: str
    scheme: str
    command: list[str]

    @property
    def title(self) -> str:
        """The head of its column."""
        return f"{self.library} {self.role}, {self.scheme}"


# --- our side


def service_of() -> penstock.Service:
    """Return the service that a client is served with."""
    seen = [b"nothing"]

    def authenticate(scheme: str, data: bytes, _peer: PeerIdentity) -> str | None:
        return "client" if (scheme, data) == ("bearer", b"token") else None

    service = penstock.Service(authenticate=authenticate)

    @service.request("echo")
    async def echo(payload: bytes) -> bytes:
        return payload

    @service.request("fail")
    async def fail() -> bytes:
        raise penstock.PublicError("boom")

    @service.request("note")
    async def note(payload: bytes) -> bytes:
        seen[0] = b"%d" % len(payload)
        return b""

    @service.request("seen")
    async def last() -> bytes:
        return seen[0]

    @service.publisher("count/{n}")
    async def count(n: int) -> AsyncIterator[bytes]:
        for number in range(n):
            yield b"%d" % number

    @service.publisher("double")
    async def double(elements: Source[bytes]) -> AsyncIterator[bytes]:
        async with penstock.subscribe(elements, demand=3) as stream:
            async for element in stream:
                yield element * 2

    return service


async def numbers(count: int) -> AsyncIterator[bytes]:
    for number in range(count):
        yield b"%d" % number


@attrs.frozen
class Checks:
    """The checks of a server, one for each row."""

    peer: penstock.Peer

    async def echo(self) -> bool:
        return bytes(await self.peer.request("echo", b"x")) == b"x"

    async def fragments(self) -> bool:
        data = bytes(range(256)) * 1000
        return bytes(await self.peer.request("echo", data)) == data

    async def error(self) -> bool:
        try:
            await self.peer.request("fail")
        except PublisherFailed as failed:
            return "boom" in str(failed)
        return False

    async def message(self) -> bool:
        await self.peer.fire_and_forget(bytes(10_000), name="note")
        for _ in range(100):
            if await self.peer.request("seen") == b"10000":
                return True
        return False

    async def stream(self) -> bool:
        async with self.peer.subscribe("count.2000", demand=7) as elements:
            return [element async for element in elements] == [b"%d" % n for n in range(2000)]

    async def cancel(self) -> bool:
        async with self.peer.subscribe("count.100000", demand=16) as elements:
            await anext(elements)
        return await self.echo()

    async def channel(self) -> bool:
        async with self.peer.request_channel(numbers(50), name="double", demand=5) as elements:
            return [element async for element in elements] == [b"%d" % n * 2 for n in range(50)]

    async def setup(self) -> bool:
        return bytes(await self.peer.request("type")) == b"application/json"


async def ask(peer: penstock.Peer) -> dict[str, str]:
    """Ask a server for each row. Return what was found."""
    checks = Checks(peer)
    functions: tuple[Callable[[], Awaitable[bool]], ...] = (
        checks.echo,
        checks.fragments,
        checks.error,
        checks.message,
        checks.stream,
        checks.cancel,
        checks.channel,
        checks.setup,
    )
    found: dict[str, str] = {}
    for row, check in zip(ROWS, functions, strict=True):
        try:
            with trio.fail_after(20):
                found[row] = "ok" if await check() else "wrong answer"
        except Exception as failed:  # boundary: a row that fails must not hide the others
            found[row] = repr(failed)
    return found


async def as_client(peer: Peer) -> dict[str, str]:
    """Start a server of the library, and ask it."""
    async with trio.open_nursery() as nursery:
        process: trio.Process = await nursery.start(
            partial(trio.run_process, peer.command, stdout=subprocess.PIPE, check=False)
        )
        assert process.stdout is not None
        line = b""
        while not line.strip().isdigit():
            line = await process.stdout.receive_some()
            if not line:
                sys.exit(f"{peer.title}: its server has ended")
        url = f"rsocket+{peer.scheme}://127.0.0.1:{int(line)}"
        setup = SetupData(b"hi", data_type="application/json")
        async with penstock.connect(
            url, setup=setup, credentials=Credentials.bearer("token")
        ) as opened:
            found = await ask(opened)
        process.kill()
    return found


async def as_server(peer: Peer) -> dict[str, str]:
    """Serve, and let a client of the library ask."""
    async with penstock.serve(service_of(), f"rsocket+{peer.scheme}://127.0.0.1:0") as server:
        command = [*peer.command, str(server.addresses[0].port)]
        done = await trio.run_process(command, capture_stdout=True, check=False)
    lines = done.stdout.decode().splitlines()
    found = dict(line.split("\t", 1) for line in lines if "\t" in line)
    if done.returncode or not found:
        found[ROWS[0]] = f"its program ended with status {done.returncode}"
    return found


# --- the peers


@contextmanager
def peers(*, short: bool) -> Iterator[list[Peer]]:
    """Yield the peers that are asked."""
    python = [sys.executable, str(HERE / "_python_peer.py")]
    found = [
        Peer("rsocket-py", "server", "tcp", [*python, "server"]),
        Peer("rsocket-py", "client", "tcp", [*python, "client"]),
    ]
    if short:
        yield found
        return
    maven = shutil.which("mvn")
    if maven is None:
        sys.exit("mvn is not on the PATH: install Maven and Java 17")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "java"
        shutil.copytree(HERE / "java", folder)
        copy = [maven, "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=lib"]
        subprocess.run(copy, cwd=folder, check=True)
        libraries = f"{folder}/lib/*"
        subprocess.run(
            ["javac", "-cp", libraries, "-d", str(folder), str(folder / "Peer.java")], check=True
        )
        java = ["java", "-cp", f"{libraries}:{folder}", "Peer"]
        found += [Peer("rsocket-java", *kind, [*java, *kind]) for kind in KINDS]
        node = [shutil.which("node") or "node", str(HERE / "peer.cjs")]
        found += [Peer("rsocket-js", *kind, [*node, *kind]) for kind in KINDS]
        yield found


async def run(*, short: bool, cuts: int, seed: int) -> int:
    """Ask all peers, and print the table. Return how many cells differ, and how many reports of
    cut connections are bad.
    """
    differ = bad = 0
    with peers(short=short) as asked:
        columns = {
            peer.title: await (as_client if peer.role == "server" else as_server)(peer)
            for peer in asked
        }
        java = [peer.command[:-2] for peer in asked if peer.library == "rsocket-java"]
        if java and cuts:
            bad = await _resume.run(java[0], cuts, seed)
    print("|", " | ".join(["", *columns]), "|")
    print("|", " | ".join("---" for _ in range(len(columns) + 1)), "|")
    for row in ROWS:
        cells = [found.get(row, "not asked") for found in columns.values()]
        print("|", " | ".join([row, *cells]), "|")
        for title, cell in zip(columns, cells, strict=True):
            differ += cell not in ("ok", "not asked", EXPECTED.get((title, row)))
    print(f"{len(columns)} peers, {differ} cells differ from what is expected")
    return differ + bad


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Living peers of RSocket 1.0")
    parser.add_argument("--short", action="store_true", help="rsocket-py only")
    parser.add_argument("--cuts", type=int, default=1000, help="of each role of rsocket-java")
    parser.add_argument("--seed", type=int, default=1, help="of the places of the cuts")
    given = parser.parse_args()
    wanted = partial(run, short=given.short, cuts=given.cuts, seed=given.seed)
    sys.exit(bool(trio.run(wanted)))
