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
from collections.abc import AsyncGenerator, Mapping, Sequence
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
from penstock.cli._description import MOST as MOST_ENTRIES
from penstock.cli._description import fits
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
        reader = options.serializer or announced_for(options.format)
        if options.format == "json" and _may_describe(options, url):
            # An answer is not announced, as elements are: without a description it is JSON.
            description = subscribe(
                str(url.address), publisher=DESCRIPTION, serializer="json", **connecting
            )
            if _is_text(await _entry_in(description, url)):
                reader = "text"
        opening = subscribe(
            options.url,
            demand=options.demand if options.stream else 1,
            serializer=reader,
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
    entry: Mapping[str, Any] = {}
    if _may_describe(options, url):
        entry = await _entry_in(peer.subscribe(DESCRIPTION, serializer="json"), url)
    form = _form_of(entry, options, registry)
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
            form = registry.serializer("text" if _is_text(entry) else "json")
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


def _form_of(
    entry: Mapping[str, Any], options: argparse.Namespace, registry: Registry
) -> Serializer | None:
    """Return the serializer of a request, None for bytes that go unchanged."""
    if options.serializer is not None:
        return registry.serializer(options.serializer)
    name = entry.get("serializer")
    return registry.serializer(name) if isinstance(name, str) and name not in TEXTS else None


def _is_text(entry: Mapping[str, Any]) -> bool:
    """Return whether an answer is a text, and not the JSON of one. Without the name of a format its
    type decides.
    """
    if "serializer" in entry:
        return bool(entry["serializer"] == "text")
    return bool(entry.get("answer") == "str")


def _may_describe(options: argparse.Namespace, url: Url) -> bool:
    """Return whether to ask the other side how a request is read: the command line may say it, and
    others than penstock have no description, and would get a request that they do not know.
    """
    return (
        options.serializer is None and url.publisher is not None and url.dialect in (None, "rsio")
    )


async def _entry_in(
    opening: AbstractAsyncContextManager[Stream[Any]], url: Url
) -> Mapping[str, Any]:
    """Return what a description has of a request; nothing if it has nothing."""
    name = (url.publisher or "").partition("?")[0]
    with suppress(Rejected, PublisherFailed):  # it does not describe itself, or not to this client
        async with opening as entries:
            left = MOST_ENTRIES
            async for entry in entries:
                pattern = entry.get("name") if isinstance(entry, dict) else None
                if isinstance(pattern, str) and fits(pattern, name):
                    return dict(entry)
                left -= 1
                if not left:
                    break
    return {}


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
