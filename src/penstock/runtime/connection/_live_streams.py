"""The streams of several connections, joined: which stream of this process waits for which.

Rules of this file:

* A publisher's generator and what it reads are joined by its task: the stream that it has opened,
  or that a task below it has opened, feeds the stream that it publishes.
* Operators join streams without a task: the pipe itself leads from one to the other. An operator
  that works on an element has a task. What is above it waits for that task.
* The subscribers of one topic wait for the one that takes nothing. One of this process has no
  stream here: then the place of its code is told.
* Nothing is kept. The joins are found with each look.
"""

import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import PurePath
from typing import Any, Final

import trio

from penstock.client import OpenStream
from penstock.reader import StreamBuffer
from penstock.spi import LiveStream, WaitsFor

MOST_ANCESTORS: Final = 64
"""Tasks above one that are looked at."""

MOST_FRAMES: Final = 256
"""Frames of a task that are looked at."""

_OWN: Final = sys.stdlib_module_names | {"penstock", "trio", "outcome", "anyio", "sniffio"}
"""Packages whose frames are not the program's. A context manager of `contextlib`, for example,
stands between the program and what it waits for.
"""

_PLUGIN: Final = "penstock_"
"""The package of a plugin begins so. Its frame is told only if the program has none."""


def joined(streams: Sequence[OpenStream]) -> list[LiveStream]:
    """Return the records of streams, each with those that it waits on."""
    families = Families(streams)
    return [each.record(*families.wait_of(each)) for each in streams]


class Families:
    """Streams by the task that makes or reads them."""

    def __init__(self, streams: Iterable[OpenStream]) -> None:
        self._publishing: dict[Any, OpenStream] = {}
        self._reading: dict[Any, list[OpenStream]] = {}
        self._by_stream: dict[int, OpenStream] = {}
        self._holding_up: dict[int, list[str]] = {}  # keys, by the id of what is shared
        # The subscriber of this process that holds up what is shared, and the place of its code.
        self._holders: dict[int, tuple[str, str]] = {}
        received: list[OpenStream] = []
        for each in streams:
            self._by_stream[id(each.stream)] = each
            if not each.fields["outbound"]:
                received.append(each)
            else:
                self._publishing.update(dict.fromkeys(each.tasks, each))
                if each.holds_up:
                    self._holding_up.setdefault(id(each.shared), []).append(each.key)
        for each in received:
            if each.task is not None:
                self._reading.setdefault(self._root_of(each.task), []).append(each)

    def wait_of(self, opened: OpenStream) -> tuple[tuple[str, ...], str]:
        """Return the keys of what a stream waits on, and the place of the code that it waits for
        if there is none.
        """
        waits, task = opened.fields["waits_for"], opened.worker or opened.task
        if opened.fields["outbound"]:
            if waits is not WaitsFor.PUBLISHER:
                return (), ""
            keys = self._awaited(task, opened)
            if opened.worker is None:
                keys = [*self._sources(opened), *self._holding_up_of(opened), *keys]
                if not keys and opened.shared is not None and not opened.holds_up:
                    holder, place = self._holder_of(opened.shared)
                    if holder:
                        opened.stage = holder
                        return (), place
        elif waits is WaitsFor.DEMAND:
            keys = self._readers_wait(opened)
        else:
            return (), ""
        return tuple(keys), "" if keys or task is None else place_of(task)

    def _sources(self, opened: OpenStream) -> list[str]:
        """Return the streams of peers that feed a stream through operators."""
        found = (self._by_stream.get(id(stream)) for stream in opened.sources)
        return [each.key for each in found if each is not None]

    def _holding_up_of(self, opened: OpenStream) -> list[str]:
        """Return the streams that hold up what a stream has in common with them."""
        if opened.shared is None:
            return []
        found = self._holding_up.get(id(opened.shared), ())
        return [key for key in found if key != opened.key]

    def _holder_of(self, shared: Any) -> tuple[str, str]:
        """Return which subscriber of this process holds up a topic, and where its code is."""
        # Looked for once for all streams of a topic: each of them may be one of 10,000.
        found = self._holders.get(id(shared))
        if found is None:
            look = getattr(shared, "held_up_by", list)  # what is shared may be of a program
            found = next(filter(None, map(_holder, look())), ("", ""))
            self._holders[id(shared)] = found
        return found

    def _readers_wait(self, opened: OpenStream) -> list[str]:
        """Return what the reader of a stream waits for, that requests nothing."""
        # Operators alone: the pipe ends in a stream that this side publishes.
        fed = self._by_stream.get(id(opened.subscriber))
        task = opened.task
        if opened.worker is not None:
            return self._awaited(opened.worker, opened)
        if fed is None and task is not None:
            fed = self._publishing.get(self._root_of(task))
        if fed is not None and fed.fields["waits_for"] is not WaitsFor.PUBLISHER:
            return [fed.key]
        return self._awaited(task, opened)

    def _awaited(self, task: Any, beside: OpenStream) -> list[str]:
        """Return the streams of which the code of a task waits for an element now."""
        if task is None:
            return []
        return [
            each.key
            for each in self._reading.get(self._root_of(task), ())
            if each.is_awaited and each is not beside
        ]

    def _root_of(self, task: Any) -> Any:
        """Return the task of the publisher's generator in which `task` runs; else `task`."""
        above = task
        for _ in range(MOST_ANCESTORS):
            if above is None:
                break
            if above in self._publishing:
                return above
            nursery = getattr(above, "parent_nursery", None)
            above = None if nursery is None else nursery.parent_task
        return task


def place_of(task: Any) -> str:
    """Return where the program's own code waits in a task: ``billing.py:42 in totals``; empty if
    none of it does.
    """
    frames: Callable[[], Iterable[tuple[Any, int]]] | None = getattr(
        task, "iter_await_frames", None
    )
    if frames is None:
        return ""
    found = of_plugin = ""
    for number, (frame, line) in enumerate(frames()):
        if number >= MOST_FRAMES:
            break
        code = frame.f_code
        package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if package in _OWN:
            continue
        place = f"{PurePath(code.co_filename).name}:{line} in {code.co_qualname}"
        if package.startswith(_PLUGIN):
            of_plugin = place
        else:
            found = place
    return found or of_plugin


def _holder(subscriber: object) -> tuple[str, str] | None:
    """Return what a person calls a subscriber of this process, and where its code is; None for one
    of a peer.
    """
    if isinstance(subscriber, StreamBuffer):
        task = getattr(subscriber, "opener", None)
        if task is None:
            return None
        return f"a subscriber in the same process (task {task.name})", place_of(task)
    kind = type(subscriber)
    if kind.__module__.partition(".")[0] in _OWN:
        return None
    return f"a subscriber in the same process ({kind.__qualname__})", kind.__module__


_clients: trio.lowlevel.RunVar[set[Any]] = trio.lowlevel.RunVar("penstock clients")


def clients() -> set[Any]:
    """Return the connections that this run of trio has opened, and that have not ended."""
    try:
        return _clients.get()
    except LookupError:
        found: set[Any] = set()
        _clients.set(found)
        return found
