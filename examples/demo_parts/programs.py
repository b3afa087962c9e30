"""Run the command `penstock` as separate programs, for the scene over a network:
one server, and its subscribers.
"""

import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import trio

EXAMPLES = Path(__file__).resolve().parents[1]
# The programs run in the folder of the examples, so that they find it.
SERVICE = "live_service:service"
START_SECONDS = 120.0  # on a busy machine a program takes 20 s to start
READ = 64 << 10


def penstock(*arguments: str) -> list[str]:
    """Return the command line that runs `penstock` with this Python."""
    return [sys.executable, "-m", "penstock", *arguments]


class DidNotStart(Exception):
    """`penstock serve` ended, or printed nothing; the message is its output."""


class Server:
    """A running `penstock serve`, with the addresses where it listens."""

    def __init__(self, program: trio.Process) -> None:
        self.program = program
        self.addresses: list[str] = []

    async def wait_ready(self, count: int) -> None:
        """Return when it has printed `count` addresses.
        Raises DidNotStart if it ends, or prints fewer in `START_SECONDS`.
        """
        printed, output = b"", _pipe_of(self.program.stderr)
        with trio.move_on_after(START_SECONDS):
            while printed.count(b"serving ") < count or not printed.endswith(b"\n"):
                more = await output.receive_some(READ)
                if not more:
                    break
                printed += more
        if printed.count(b"serving ") < count:
            raise DidNotStart(
                printed.decode(errors="replace").strip() or "penstock serve printed nothing"
            )
        lines = printed.decode().splitlines()
        self.addresses = [line.split()[-1] for line in lines if line.startswith("serving ")]

    async def shut_down(self) -> tuple[int, float]:
        """Send SIGTERM; return the exit status, and how many seconds the program took to end."""
        began = trio.current_time()
        self.program.terminate()
        with trio.move_on_after(START_SECONDS):
            await self.program.wait()
        return (
            self.program.returncode if self.program.returncode is not None else -1,
            trio.current_time() - began,
        )


@asynccontextmanager
async def serving(*arguments: str) -> AsyncIterator[Server]:
    """Run `penstock serve` for the length of a block."""
    program = await _start(
        penstock("serve", SERVICE, *arguments), subprocess.DEVNULL, subprocess.DEVNULL
    )
    server = Server(program)
    try:
        await server.wait_ready(sum("://" in argument for argument in arguments))
        yield server
    finally:
        program.kill()  # does nothing if the program has ended
        with trio.CancelScope(shield=True):
            await program.wait()  # a killed program ends


async def cat(*arguments: str, take: Callable[[bytes], None]) -> str:
    """Run `penstock cat`, pass its output to `take`, and return its error text, or an empty one."""
    program = await _start(
        penstock("cat", "--quiet", *arguments), subprocess.DEVNULL, subprocess.PIPE
    )
    return await _read(program, _pipe_of(program.stdout), take)


async def cat_through_pipes(*arguments: str, take: Callable[[bytes], None]) -> str:
    """Run `penstock cat` and `penstock serve`, connected by two pipes; `cat` then writes
    elements to standard error.
    """
    (server_reads, cat_writes), (cat_reads, server_writes) = os.pipe(), os.pipe()
    try:
        server = await _start(penstock("serve", SERVICE, "pipe:"), server_reads, server_writes)
        program = await _start(penstock("cat", "--quiet", *arguments), cat_reads, cat_writes)
    finally:
        for end in (server_reads, cat_writes, cat_reads, server_writes):
            os.close(end)
    try:
        return await _read(program, _pipe_of(program.stderr), take)
    finally:
        server.kill()  # it would end by itself after its only connection; killing it saves the wait
        with trio.CancelScope(shield=True):
            await server.wait()  # a killed program ends


async def _start(command: list[str], stdin: int, stdout: int) -> trio.Process:
    return await trio.lowlevel.open_process(
        command, cwd=EXAMPLES, stdin=stdin, stdout=stdout, stderr=subprocess.PIPE
    )


def _pipe_of(stream: trio.abc.ReceiveStream | None) -> trio.abc.ReceiveStream:
    """Return `stream`, which is None only for a program that was started without this pipe."""
    if stream is None:
        raise RuntimeError("this program was started without this pipe")
    return stream


async def _read(
    program: trio.Process, output: trio.abc.ReceiveStream, take: Callable[[bytes], None]
) -> str:
    errors = ""
    try:
        while data := await output.receive_some(READ):
            take(bytes(data))
        if program.stderr is not None and program.stderr is not output:
            errors = bytes(await program.stderr.receive_some(READ)).decode(errors="replace").strip()
        status = await program.wait()
    finally:
        program.kill()
    return "" if status == 0 else errors or f"penstock cat ended with status {status}"
