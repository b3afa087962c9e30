"""Send one request, and write its answer to standard output.

URL ends with the name of the request: tcp://127.0.0.1:7000/price/EURUSD. PAYLOAD is a text, @FILE
for the bytes of a file, or - for those of standard input; without one the request has none. A
service that describes itself says how the payload and the answer are read; else they are bytes,
texts or JSON, and go unchanged. --serializer names another format: then PAYLOAD is written as JSON,
and so is the answer.

Without --stream, --fire-and-forget or --channel one value is asked for. A channel sends the lines
of standard input as the other side requests them. A URL speaks RS.io. One that begins with
reactivesocket+ or rsocket+ speaks that protocol; without a name there, PAYLOAD is all that is sent.
"""

import argparse
import json
import math
import os
from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, suppress
from typing import Any, Final

import trio

from penstock.api import (
    Limits,
    NoElement,
    PublisherFailed,
    Rejected,
    StreamTimeout,
    UsageError,
)
from penstock.cli._credentials import credentials_arguments, credentials_of
from penstock.cli._encoding import encoding_argument
from penstock.cli._format import FORMATS, TEXTS, announced_for
from penstock.cli._input import check_input, lines_of_input, payload_of
from penstock.cli._output import Output, copy
from penstock.cli._progress import Progress, line_file, shown
from penstock.cli._screen import Screen
from penstock.cli._standard_files import check_output
from penstock.cli._tls import tls_arguments, transport_options
from penstock.cli._transports import permitted_transports, transports_argument
from penstock.core import Stream
from penstock.reader import DEFAULT_DEMAND
from penstock.runtime import DESCRIPTION, Peer, connect, subscribe
from penstock.spi import Registry, Serializer, Url, build_registry, parse_url

MOST: Final = Limits().max_element
"""Bytes of a payload, and of a line that a channel sends."""

MOST_ENTRIES: Final = 10_000
"""Entries of a description that are read, at most: a server could send them without end."""


def arguments(command: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    command.add_argument(
        "url", metavar="URL", help="the request: tcp://127.0.0.1:7000/price/EURUSD, rsocket+tcp://…"
    )
    command.add_argument(
        "payload", metavar="PAYLOAD", nargs="?", help="a text, @FILE, or - for standard input"
    )
    shape = command.add_mutually_exclusive_group()
    shape.add_argument("--stream", action="store_true", help="ask for a stream of values")
    shape.add_argument(
        "--fire-and-forget", action="store_true", help="send the request, which has no answer"
    )
    shape.add_argument(
        "--channel", action="store_true", help="send the lines of standard input, and get a stream"
    )
    command.add_argument(
        "--format",
        choices=sorted(FORMATS),
        default="text",
        help="how to write an answer (default: text)",
    )
    command.add_argument(
        "--serializer", help="that of the payload and the answer (default: as described, or bytes)"
    )
    command.add_argument(
        "--timeout", metavar="SECONDS", type=float, help="give up after this time (default: wait)"
    )
    command.add_argument(
        "--demand",
        type=int,
        default=DEFAULT_DEMAND,
        help=f"values requested ahead, of a stream (default: {DEFAULT_DEMAND})",
    )
    command.add_argument("--count", type=int, help="stop a stream after COUNT values")
    command.add_argument("--quiet", action="store_true", help="no progress on standard error")
    encoding_argument(command, listens=False)
    command.add_argument(
        "--setup", metavar="TEXT", default="", help="the data of this client's SETUP"
    )
    credentials_arguments(command)
    transports_argument(command)
    tls_arguments(command, listens=False)


async def run(options: argparse.Namespace) -> int:
    """Send the request, and write what comes."""
    check_output()
    _check(options)
    with trio.move_on_after(math.inf if options.timeout is None else options.timeout) as scope:
        await _request(options)
    if scope.cancelled_caught:
        raise StreamTimeout(f"the answer was not complete within {options.timeout:g} s (--timeout)")
    return 0


def _check(options: argparse.Namespace) -> None:
    if options.demand < 1:
        raise UsageError(f"--demand {options.demand}: ask for at least one value at a time")
    if options.count is not None and options.count < 1:
        raise UsageError(f"--count {options.count}: stop after at least one value, or leave it out")
    if options.timeout is not None and not options.timeout > 0:
        raise UsageError(f"--timeout {options.timeout:g}: give more than 0 seconds")
    if options.channel:
        if options.payload is not None:
            raise UsageError(
                "a channel sends the lines of standard input; leave PAYLOAD out, and write it there"
            )
        check_input()


async def _request(options: argparse.Namespace) -> None:
    url, registry = parse_url(options.url), build_registry()
    payload = await payload_of(options.payload, MOST)
    connecting: dict[str, Any] = {
        "encoding": options.encoding,
        "setup": os.fsencode(options.setup),
        "credentials": credentials_of(options),
        "options": transport_options(options),
        "transports": permitted_transports(options),
        "registry": registry,
    }
    if _is_subscribe(options, url, payload):
        # A subscribe to a request is a stream of its answer, over each transport, and the other
        # side announces how it is read.
        opening = subscribe(
            options.url,
            demand=options.demand if options.stream else 1,
            serializer=options.serializer or announced_for(options.format),
            **connecting,
        )
        await (_write_stream if options.stream else _write_first)(opening, options)
        return
    async with connect(str(url.address), **connecting) as peer:
        if options.channel:
            await _open_channel(peer, options, url.publisher)
        else:
            await _ask(peer, options, url, payload, registry)


def _is_subscribe(options: argparse.Namespace, url: Url, payload: bytes | None) -> bool:
    return (
        url.publisher is not None
        and payload is None
        and url.dialect in (None, "rsio")
        and not (options.fire_and_forget or options.channel)
    )


async def _ask(
    peer: Peer, options: argparse.Namespace, url: Url, payload: bytes | None, registry: Registry
) -> None:
    name = url.publisher
    if name is None and payload is None:
        raise UsageError(
            f"{options.url!r} names no request, and there is no PAYLOAD; write the name after the "
            "authority (tcp://host:port/name)"
        )
    form = await _form_of(peer, options, url, registry)
    data = payload if payload is None or form is None else _encoded(payload, form)
    if name is not None and data is None and url.dialect == "reactivesocket":
        # It has data and no names: the data is the name.
        data, name = name.encode(), None
    if options.fire_and_forget:
        await peer.fire_and_forget(data or b"", name=name)
    elif options.stream:
        reader = form or announced_for(options.format)
        opening = peer.request_stream(
            data or b"", name=name, demand=options.demand, serializer=reader
        )
        await _write_stream(opening, options)
    else:
        answer = await (
            peer.request_response(data or b"") if name is None else peer.request(name, data)
        )
        if form is None and options.format == "json":
            form = registry.serializer("json")
        await _write(options, [answer if form is None else form.loads(answer)])


async def _open_channel(peer: Peer, options: argparse.Namespace, name: str | None) -> None:
    async with aclosing(_lines()) as lines:
        channel = peer.request_channel(
            lines, name=name, demand=options.demand, serializer=options.serializer
        )
        await _write_stream(channel, options)


async def _lines() -> AsyncGenerator[bytes]:
    async with aclosing(lines_of_input(MOST)) as batches:
        async for batch in batches:
            for line in batch:
                yield line


# --- what the other side describes


async def _form_of(
    peer: Peer, options: argparse.Namespace, url: Url, registry: Registry
) -> Serializer | None:
    """Return the serializer of a request, None for bytes that go unchanged."""
    if options.serializer is not None:
        return registry.serializer(options.serializer)
    # Others than penstock have no description, and would get a request that they do not know.
    if url.publisher is None or url.dialect not in (None, "rsio"):
        return None
    name = await _described(peer, url.publisher.partition("?")[0])
    return None if name is None or name in TEXTS else registry.serializer(name)


async def _described(peer: Peer, name: str) -> str | None:
    """Return the name of the serializer that the peer describes for a request;
    None if it describes none.
    """
    with suppress(Rejected, PublisherFailed):  # it does not describe itself, or not to this client
        async with peer.subscribe(DESCRIPTION, serializer="json") as entries:
            left = MOST_ENTRIES
            async for entry in entries:
                found = _serializer_in(entry, name)
                left -= 1
                if found is not None or not left:
                    return found
    return None


def _serializer_in(entry: object, name: str) -> str | None:
    if not isinstance(entry, dict):
        return None
    pattern, serializer = entry.get("name"), entry.get("serializer")
    if not isinstance(pattern, str) or not isinstance(serializer, str):
        return None
    # A parameter stands for one segment.
    parts, given = pattern.split("/"), name.split("/")
    fits = len(parts) == len(given) and all(
        part == text or (part.startswith("{") and part.endswith("}"))
        for part, text in zip(parts, given, strict=True)
    )
    return serializer if fits else None


def _encoded(payload: bytes, form: Serializer) -> bytes:
    if form.name in TEXTS:
        return payload
    try:
        value = json.loads(payload)
    except ValueError as error:
        raise UsageError(
            f"the payload goes as {form.name!r}, so write it as JSON; this is none: {error}"
        ) from None
    return form.dumps(value)


# --- writing


async def _write_stream(
    opening: AbstractAsyncContextManager[Stream[Any]], options: argparse.Namespace
) -> None:
    file = line_file(quiet=options.quiet)
    screen = Screen(line_file=file)
    async with (
        opening as stream,
        shown(Progress(stream, options.count), screen, file, quiet=options.quiet),
    ):
        await copy(stream, Output(options.format, screen), options.count)


async def _write_first(
    opening: AbstractAsyncContextManager[Stream[Any]], options: argparse.Namespace
) -> None:
    async with opening as stream:
        async for element in stream:
            await _write(options, [element])
            return
    raise NoElement("the stream ended without a value; --stream takes one that may be empty")


async def _write(options: argparse.Namespace, elements: Sequence[Any]) -> None:
    output = Output(options.format, Screen(line_file=None))
    await trio.to_thread.run_sync(output.write, elements, abandon_on_cancel=True)
    await trio.to_thread.run_sync(output.end, abandon_on_cancel=True)
