"""Subscribe to a publisher and write its elements to standard output, at the pace of the program that reads them.

With --format text (the default) each element is a line, with json a line of JSON, with raw its bytes without a separator.
A URL speaks RS.io. A URL that begins with reactivesocket+ speaks ReactiveSocket, and requests the stream of that name.
"""

import argparse
import json
import os
import sys
from typing import Any

import trio

from penstock.api import UsageError
from penstock.cli._progress import Progress
from penstock.cli._tls import tls_arguments, transport_options
from penstock.core import DEFAULT_DEMAND
from penstock.runtime import subscribe

HELP = "write a publisher's elements to standard output"
SERIALIZERS = {"text": "bytes", "json": "json", "raw": "bytes"}


def arguments(command: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    command.add_argument(
        "url", metavar="URL", help="the publisher: tcp://127.0.0.1:7000/ticks/EURUSD, reactivesocket+tcp://…, unix:///run/p.sock#ticks, …"
    )
    command.add_argument("--format", choices=sorted(SERIALIZERS), default="text", help="how to write an element (default: text)")
    command.add_argument("--serializer", help="the publisher's serializer (default: bytes, or json for --format json)")
    command.add_argument("--setup", metavar="TEXT", default="", help="the data of this client's SETUP, for reactivesocket+…")
    command.add_argument("--demand", type=int, default=DEFAULT_DEMAND, help=f"elements requested ahead (default: {DEFAULT_DEMAND})")
    command.add_argument("--count", type=int, help="stop after COUNT elements")
    command.add_argument("--quiet", action="store_true", help="no progress on standard error")
    tls_arguments(command, listens=False)


def formatted(element: Any, style: str) -> bytes:
    """Return the bytes to write for an element."""
    is_bytes = isinstance(element, bytes | bytearray | memoryview)
    if style == "raw":
        if not is_bytes:
            raise UsageError(f"--format raw writes bytes, but the serializer returned {type(element).__name__!r}; leave --serializer out")
        return bytes(element)
    if style == "json":
        if is_bytes:
            raise UsageError("--format json needs a serializer that returns JSON values, not bytes; leave --serializer out")
        return json.dumps(element, ensure_ascii=False).encode() + b"\n"
    text = bytes(element).decode("utf-8", "replace") if is_bytes else str(element)
    return text.encode() + b"\n"


async def run(options: argparse.Namespace) -> int:
    """Copy elements until the stream ends."""
    if sys.stdout is None:
        raise UsageError("standard output is closed, so elements cannot be written")
    if options.demand < 1:
        raise UsageError(f"--demand {options.demand}: ask for at least one element at a time")
    if options.count is not None and options.count < 1:
        raise UsageError(f"--count {options.count}: stop after at least one element, or leave it out")
    serializer = options.serializer or SERIALIZERS[options.format]
    left = options.count
    opening = subscribe(
        options.url,
        demand=options.demand,
        serializer=serializer,
        setup=os.fsencode(options.setup),
        options=transport_options(options),
    )
    async with opening as stream, trio.open_nursery() as nursery:
        progress = Progress(stream, quiet=options.quiet)
        nursery.start_soon(progress.show)
        async for batch in stream.batches():
            part = batch if left is None else batch[:left]
            data = b"".join(formatted(element, options.format) for element in part)
            # In a thread: the write blocks while the reading program is slow. No batch is taken meanwhile, so demand stops as well.
            await trio.to_thread.run_sync(_write, data, abandon_on_cancel=True)
            if left is not None:
                left -= len(part)
                if not left:
                    break
        nursery.cancel_scope.cancel()
    if not options.quiet:
        progress.write_summary()
    return 0


def _write(data: bytes) -> None:
    # The descriptor, not sys.stdout: an abandoned thread would hold the lock of its buffer when the interpreter flushes it at exit.
    left, file = memoryview(data), sys.stdout.fileno()
    while left:
        left = left[os.write(file, left) :]
