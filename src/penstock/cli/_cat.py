"""Subscribe to a publisher and write its elements to standard output, as fast as whoever reads that takes them.

As text (the default) an element is a line; as json it is a line of JSON; raw it is its bytes and nothing else.
A URL speaks RS.io; one that begins with reactivesocket+ speaks ReactiveSocket, and asks for the stream of that name.
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
    """Say what can be given."""
    command.add_argument(
        "url", metavar="URL", help="the publisher: tcp://127.0.0.1:7000/ticks/EURUSD, reactivesocket+tcp://…, unix:///run/p.sock#ticks, …"
    )
    command.add_argument("--format", choices=sorted(SERIALIZERS), default="text", help="how to write an element (default: text)")
    command.add_argument("--serializer", help="how the publisher puts elements into bytes (default: what the format suggests)")
    command.add_argument("--setup", metavar="TEXT", default="", help="what to introduce this client with, over reactivesocket+…")
    command.add_argument("--demand", type=int, default=DEFAULT_DEMAND, help=f"elements under way at a time (default: {DEFAULT_DEMAND})")
    command.add_argument("--count", type=int, help="stop after so many elements")
    command.add_argument("--quiet", action="store_true", help="no progress on standard error")
    tls_arguments(command, listens=False)


def shown(element: Any, style: str) -> bytes:
    """Return what is written for an element."""
    is_bytes = isinstance(element, bytes | bytearray | memoryview)
    if style == "raw":
        if not is_bytes:
            raise UsageError(
                f"--format raw writes bytes, and the serializer made {type(element).__name__!r} of them; leave --serializer out"
            )
        return bytes(element)
    if style == "json":
        if is_bytes:
            raise UsageError("--format json needs a serializer that makes more than bytes of an element; leave --serializer out")
        return json.dumps(element, ensure_ascii=False).encode() + b"\n"
    text = bytes(element).decode("utf-8", "replace") if is_bytes else str(element)
    return text.encode() + b"\n"


async def run(options: argparse.Namespace) -> int:
    """Copy until the stream ends."""
    if sys.stdout is None:
        raise UsageError("standard output is closed; there is nowhere to write to")
    if options.demand < 1:
        raise UsageError(f"--demand {options.demand}: ask for at least one element at a time")
    if options.count is not None and options.count < 1:
        raise UsageError(f"--count {options.count}: stop after at least one element, or leave it out")
    serializer = options.serializer or SERIALIZERS[options.format]
    left = options.count
    how, setup = transport_options(options), os.fsencode(options.setup)
    opening = subscribe(options.url, demand=options.demand, serializer=serializer, setup=setup, options=how)
    async with opening as stream, trio.open_nursery() as nursery:
        progress = Progress(stream, quiet=options.quiet)
        nursery.start_soon(progress.show)
        async for batch in stream.batches():
            part = batch if left is None else batch[:left]
            data = b"".join(shown(element, options.format) for element in part)
            await trio.to_thread.run_sync(_write, data, abandon_on_cancel=True)  # it may block, and then nothing more is asked for
            if left is not None:
                left -= len(part)
                if not left:
                    break
        nursery.cancel_scope.cancel()
    if not options.quiet:
        progress.sum_up()
    return 0


def _write(data: bytes) -> None:
    left, file = memoryview(data), sys.stdout.fileno()  # not the buffer above it: a thread that is left behind would hold its lock
    while left:
        left = left[os.write(file, left) :]
