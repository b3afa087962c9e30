"""The command `penstock` as programs of their own, for the scene over a network: a server, and the subscribers that read from it."""

import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import trio

EXAMPLES = Path(__file__).resolve().parents[1]
SERVICE = "live_service:service"  # it is found from the folder of the examples, where the programs run
START_SECONDS = 15.0
READ = 64 << 10


def penstock(*arguments: str) -> list[str]:
    """The command, as this Python has it."""
    return [sys.executable, "-m", "penstock", *arguments]


class DidNotStart(Exception):
    """`penstock serve` ended, or said nothing; its words say why."""


class Server:
    """`penstock serve`, ready: where it listens, and how it ended."""

    def __init__(self, program: trio.Process) -> None:
        self.program = program
        self.addresses: list[str] = []

    async def wait_ready(self, count: int) -> None:
        """Return when it has said where it listens. Raises DidNotStart where it does not."""
        said, output = b"", _there(self.program.stderr)
        with trio.move_on_after(START_SECONDS):
            while said.count(b"serving ") < count or not said.endswith(b"\n"):
                more = await output.receive_some(READ)
                if not more:
                    break
                said += more
        if said.count(b"serving ") < count:
            raise DidNotStart(said.decode(errors="replace").strip() or "it said nothing")
        self.addresses = [line.split()[-1] for line in said.decode().splitlines()]

    async def shut_down(self) -> tuple[int, float]:
        """Send SIGTERM; return the status that it ended with, and after how many seconds."""
        began = trio.current_time()
        self.program.terminate()
        with trio.move_on_after(START_SECONDS):
            await self.program.wait()
        return self.program.returncode if self.program.returncode is not None else -1, trio.current_time() - began


@asynccontextmanager
async def serving(*arguments: str) -> AsyncIterator[Server]:
    """`penstock serve` for the length of a block."""
    program = await _start(penstock("serve", SERVICE, *arguments), subprocess.DEVNULL, subprocess.DEVNULL)
    server = Server(program)
    try:
        await server.wait_ready(sum("://" in argument for argument in arguments))
        yield server
    finally:
        program.kill()  # no harm where it has ended
        with trio.CancelScope(shield=True):
            await program.wait()  # a killed program ends


async def cat(*arguments: str, take: Callable[[bytes], None]) -> str:
    """Run `penstock cat`, hand on what it writes, and return what went wrong in its own words, or nothing."""
    program = await _start(penstock("cat", "--quiet", *arguments), subprocess.DEVNULL, subprocess.PIPE)
    return await _read(program, _there(program.stdout), take)


async def cat_through_pipes(*arguments: str, take: Callable[[bytes], None]) -> str:
    """The same where standard input and output are the connection, with a server at the other end: the elements are on standard error."""
    (there, to_there), (here, to_here) = os.pipe(), os.pipe()
    try:
        server = await _start(penstock("serve", SERVICE, "pipe:"), there, to_here)
        program = await _start(penstock("cat", "--quiet", *arguments), here, to_there)
    finally:
        for end in (there, to_there, here, to_here):
            os.close(end)
    try:
        return await _read(program, _there(program.stderr), take)
    finally:
        server.kill()  # it ends by itself, for its only connection has; but nobody waits for that here
        with trio.CancelScope(shield=True):
            await server.wait()  # a killed program ends


async def _start(command: list[str], stdin: int, stdout: int) -> trio.Process:
    return await trio.lowlevel.open_process(command, cwd=EXAMPLES, stdin=stdin, stdout=stdout, stderr=subprocess.PIPE)


def _there(stream: trio.abc.ReceiveStream | None) -> trio.abc.ReceiveStream:
    """A program has the streams that it was started with."""
    if stream is None:
        raise RuntimeError("this program was started without a pipe there")
    return stream


async def _read(program: trio.Process, output: trio.abc.ReceiveStream, take: Callable[[bytes], None]) -> str:
    said = ""
    try:
        while data := await output.receive_some(READ):
            take(bytes(data))
        if program.stderr is not None and program.stderr is not output:
            said = bytes(await program.stderr.receive_some(READ)).decode(errors="replace").strip()
        status = await program.wait()
    finally:
        program.kill()
    return "" if status == 0 else said or f"penstock cat ended with status {status}"
