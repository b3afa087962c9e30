"""The open streams of this process as a text: for a program that stands still, and a test that
does.

Rules of this file:

* Nothing is kept for it: the streams are found among all objects of the process. With a million
  objects that takes some 50 ms, in which nothing else runs.
* It may be called at any time and in any thread. What it shows may change while it looks.
"""

import gc
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TextIO

from penstock.api import StreamState, pipe_parts, printable
from penstock.reader import StreamBuffer
from penstock.runtime.connection import ConnectionTask, Families, place_of
from penstock.runtime.server._hosted_streams import HostedStreams
from penstock.session import ReceivingStream

MOST_STREAMS: Final = 1_000
"""Streams that are printed."""

DEEPEST: Final = 20
"""Levels of streams that feed streams."""

LONGEST_LABEL: Final = 200
"""Characters of a name."""


def inspect(file: TextIO | None = None) -> None:
    """Print the streams that are open in this process, each with its pipe: what each part holds,
    and where the code is that it waits for. By default to standard error.

    Under a publisher's generator stand the streams that it reads. The streams that connections
    carry follow, in both directions, with what each waits for. It needs neither a server nor a
    connection, and costs nothing before it is called.
    """
    text = pipe_tree()
    (sys.stderr if file is None else file).write(text)


def pipe_tree() -> str:
    """Return what `inspect` prints."""
    objects = gc.get_objects()
    streams = [
        each
        for each in objects
        if isinstance(each, StreamBuffer) and each.statistics().state is StreamState.OPEN
    ]
    connections = [each for each in objects if type(each) is ConnectionTask]
    hosted = [each for each in objects if type(each) is HostedStreams]
    del objects
    lines = [f"{len(streams)} streams are read in this process"]
    lines += _Tree(streams[:MOST_STREAMS]).lines()
    lines += _carried(connections, hosted)
    return "".join(f"{line}\n" for line in lines)


class _Tree:
    """Streams that are read, each below the generator that reads it."""

    def __init__(self, streams: Sequence[StreamBuffer[Any]]) -> None:
        self._parts = {id(each): tuple(pipe_parts(each.subscription)) for each in streams}
        pumps = {
            part.task
            for parts in self._parts.values()
            for _, part in parts
            if part.task is not None
        }
        self._top: list[StreamBuffer[Any]] = []
        self._below: dict[Any, list[StreamBuffer[Any]]] = {}
        for each in streams:
            above = getattr(each, "opener", None)
            for _ in range(64):
                if above is None or above in pumps:
                    break
                nursery = getattr(above, "parent_nursery", None)
                above = None if nursery is None else nursery.parent_task
            if above is None:
                self._top.append(each)
            else:
                self._below.setdefault(above, []).append(each)

    def lines(self) -> Iterator[str]:
        """Yield the lines."""
        for each in self._top:
            yield from self._lines_of(each, 1)

    def _lines_of(self, stream: StreamBuffer[Any], depth: int) -> Iterator[str]:
        indent = "  " * depth
        yield f"{indent}{stream!r}{_reader_of(stream)}"
        for each, part in self._parts[id(stream)]:
            if isinstance(each, ReceivingStream):
                yield f"{indent}  stream {each.id} of the peer: {each.outstanding:,} outstanding"
            elif part.label:
                held = f" holds {part.held:,}" if part.held else ""
                place = "" if part.task is None else place_of(part.task)
                at = f", at {place}" if place else ""
                yield f"{indent}  {_shown(part.label)}{held}{at}"
            if part.task is not None and depth < DEEPEST:
                for inner in self._below.get(part.task, ()):
                    yield from self._lines_of(inner, depth + 2)


def _reader_of(stream: StreamBuffer[Any]) -> str:
    if stream.is_awaited:
        return ": its reader waits for an element"
    task = getattr(stream, "opener", None)
    place = "" if task is None else place_of(task)
    return f": its reader is at {place}" if place else ""


def _carried(
    connections: Iterable[ConnectionTask], hosted: Iterable[HostedStreams]
) -> Iterator[str]:
    owners: list[ConnectionTask | HostedStreams] = [*connections, *hosted]
    opened = [stream for each in owners for stream in _opened(each)]
    if not opened:
        return
    yield f"{len(opened)} streams cross connections"
    families = Families(opened)
    names: Mapping[str, str] = {each.key: _shown(each.fields["name"]) for each in opened}
    for each in opened[:MOST_STREAMS]:
        known = each.fields
        waits_on, place = families.wait_of(each)
        arrow = "to" if known["outbound"] else "from"
        yield (
            f"  {names[each.key] or '(no name)'} {arrow} {_shown(known['peer'].address)}: waits "
            f"for {known['waits_for'].value}, {known['demand']:,} outstanding"
            + "".join(f", on {names.get(key) or key}" for key in waits_on)
            + (f", at {place}" if place else "")
        )
        for part in known["parts"]:
            held = f" holds {part.held:,}" if part.held else ""
            yield f"    {_shown(part.label)}{held}"


def _opened(owner: ConnectionTask | HostedStreams) -> list[Any]:
    try:
        return list(owner.open_streams())
    except RuntimeError:
        return []  # of a run of trio that has ended, or that runs elsewhere


def _shown(text: str) -> str:
    return printable(text[:LONGEST_LABEL])
