"""The elements of a stream as a table in a notebook.

Rules of this file:

* The page says how many rows it has room for, each time that it has drawn rows and shows them. So
  many elements are outstanding then, and no more: the demand is that of the page.
* A page that shows the table nowhere asks for nothing, and the publisher waits.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, Final

from penstock.api import PenstockError, UsageError

MOST_TEXT: Final = 200
"""Characters of a cell: a page that draws longer ones is slow."""

KEPT: Final = 1_000
"""Rows that the page keeps. Older ones are removed."""


class Table:
    """The elements of a stream as a table in a notebook: ``Table(peer.subscribe, "ticks")``.

    The table asks for as many elements as it can draw. It asks for none while its cell is scrolled
    away, its tab is hidden, or its reader has scrolled back.
    """

    def __init__(
        self,
        subscribe: Callable[..., AbstractAsyncContextManager[Any]],
        *args: Any,
        rows: int = 10,
        **options: Any,
    ) -> None:
        """`subscribe` is the method of a peer on asyncio, or `penstock.aio.subscribe`; `args` and
        `options` are its arguments, without `demand`. `rows` are shown at a time. Make it in a
        cell, whose loop runs. Raises UsageError, also if anywidget is not installed.
        """
        if "demand" in options:
            raise UsageError("Table() was given demand=; the page decides about it: leave it out")
        if type(rows) is not int or rows < 1:
            raise UsageError(f"rows={rows!r}; give the number of rows that the table shows")
        try:
            self._loop = asyncio.get_running_loop()
        except RuntimeError:
            raise UsageError(
                "Table() needs a loop of asyncio that runs; make it in a cell of a notebook, or in "
                "an async function"
            ) from None
        block = subscribe(*args, demand=0, **options)
        self._widget: Any = _new_widget(rows)
        self._widget.on_msg(self._on_message)
        self._rows = rows
        self._stream: Any = None
        self._wanted = 0  # rows that the page has room for
        self._end: str | None = None
        self.received: int = 0
        """Elements that have come."""
        self._task = self._loop.create_task(self._read(block), name="penstock table")

    def stop(self) -> None:
        """End the stream. The table does not change."""
        self._task.cancel()

    async def wait_ended(self) -> None:
        """Wait until the stream has ended. Its failure is shown below the table."""
        await asyncio.wait((self._task,))

    def _repr_mimebundle_(self, **options: Any) -> Any:
        """Show the table: Jupyter calls this for the last expression of a cell."""
        bundle = self._widget._repr_mimebundle_(**options)
        data = bundle[0] if isinstance(bundle, tuple) else bundle
        if data is not None:
            data["text/plain"] = repr(self)  # where no widget is drawn
        return bundle

    def __repr__(self) -> str:
        state = "open" if self._end is None else self._end
        return f"<table, {self.received} elements, {state}>"

    # --- inside

    async def _read(self, block: AbstractAsyncContextManager[Any]) -> None:
        end = "stopped"
        try:
            async with block as self._stream:
                self._request()
                async for elements in self._stream.batches():
                    self.received += len(elements)
                    self._wanted -= len(elements)
                    self._widget.send({"rows": [row_of(element) for element in elements]})
            end = "complete"
        except PenstockError as error:
            end = f"{type(error).__name__}: {error}"
        finally:
            self._stream = None
            self._end = end
            self._widget.send({"end": end})

    def _on_message(self, _widget: object, content: Any, _buffers: object) -> None:
        wants = content.get("wants") if isinstance(content, Mapping) else None
        if type(wants) is int:
            # A kernel may handle messages of pages in another thread.
            self._loop.call_soon_threadsafe(self._on_wants, min(wants, self._rows))

    def _on_wants(self, wants: int) -> None:
        if self._end is not None:
            self._widget.send({"end": self._end})  # to a page that was opened later
            return
        missing, self._wanted = wants - self._wanted, max(wants, self._wanted)
        if self._stream is not None and missing > 0:
            self._stream.request(missing)

    def _request(self) -> None:
        if self._wanted:
            self._stream.request(self._wanted)


def row_of(element: Any) -> dict[str, str]:
    """Return the cells of an element by their columns."""
    if isinstance(element, Mapping):
        return {str(name): text_of(value) for name, value in element.items()}
    names: list[str] | None = None
    if is_dataclass(element):
        names = [each.name for each in fields(element)]
    elif hasattr(element, "_fields"):  # a named tuple
        names = list(element._fields)
    elif hasattr(element, "__struct_fields__"):  # a struct of msgspec
        names = list(element.__struct_fields__)
    elif hasattr(type(element), "__attrs_attrs__"):
        names = [each.name for each in type(element).__attrs_attrs__]
    if names is None:
        return {"element": text_of(element)}
    return {name: text_of(getattr(element, name)) for name in names}


def text_of(value: object) -> str:
    """Return the text of a cell."""
    if isinstance(value, bytes | bytearray | memoryview):
        text = bytes(value[: MOST_TEXT + 1]).decode(errors="backslashreplace")
    else:
        text = str(value)
    return text if len(text) <= MOST_TEXT else text[:MOST_TEXT] + "…"


def _new_widget(rows: int) -> Any:
    try:
        # Imported here: programs that import penstock.notebook need not have them.
        import anywidget  # noqa: PLC0415  # see above
        import traitlets  # noqa: PLC0415  # see above
    except ImportError:
        raise UsageError(
            "a table needs anywidget, which is not installed; install penstock[notebook]"
        ) from None
    here = Path(__file__)
    names = {
        "_esm": here.with_name("table.js").read_text(encoding="utf-8"),
        "_css": here.with_name("table.css").read_text(encoding="utf-8"),
        "rows": traitlets.Int(rows).tag(sync=True),
        "kept": traitlets.Int(KEPT).tag(sync=True),
    }
    return type("PenstockTable", (anywidget.AnyWidget,), names)()
