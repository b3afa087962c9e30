"""A source that a registry knows by its schemes. The modules of the plugin, and the library that it
is built on, are imported with the first URL.
"""

from contextlib import AbstractAsyncContextManager
from functools import cache
from importlib import import_module
from typing import Any, ClassVar

from penstock.spi._url_source import ElementSink, SourceOptions, UrlSource


@cache
def made_late(target: str) -> Any:
    """Import ``package.module:Class``, and return its one object of this process."""
    module, _, name = target.partition(":")
    return getattr(import_module(module), name)()


class LateUrlSource(UrlSource):
    """A `UrlSource` that is imported with the first URL. A subclass gives `schemes`,
    `why_no_connection` and `target`.
    """

    target: ClassVar[str]
    """The class of the source, which needs no arguments: ``package.module:Class``."""

    def check(self, url: str, options: SourceOptions) -> None:
        """Import the source, and let it check."""
        self.made().check(url, options)

    async def read(self, url: str, sink: ElementSink, options: SourceOptions) -> None:
        """Let the source read."""
        await self.made().read(url, sink, options)

    def log_at(
        self, url: str, options: SourceOptions, *, read_only: bool = True, retention: Any = None
    ) -> AbstractAsyncContextManager[Any]:
        """Let the source return the log."""
        return self.made().log_at(url, options, read_only=read_only, retention=retention)

    def made(self) -> UrlSource:
        """Return the source. Imports it."""
        made: UrlSource = made_late(self.target)
        return made
