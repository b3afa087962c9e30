"""Schemes of URLs that lead to a stream, and to no connection: ``http://`` for example. `remote`
and `subscribe` take such a URL.

Rules of this file:

* One call of `UrlSource.read` is one subscription.
  It runs in a task of the subscription, and its return is the completion.
* It delivers no more elements than were requested (`ElementSink.demand`).
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, ClassVar

import attrs

from penstock.api import Credentials, Limits, UsageError
from penstock.spi._options import TransportOptions


@attrs.frozen(kw_only=True)
class SourceOptions:
    """The options of `remote` that concern a scheme."""

    limits: Limits
    transport: TransportOptions
    credentials: Credentials | None = None

    traceparent: str = ""
    """What tells this subscription from all others, as W3C Trace Context has it. A plugin whose
    protocol has a place for it sends it, so that the maps of demand of both sides show one stream.
    """


class ElementSink(ABC):
    """The subscriber of one subscription to a URL."""

    demand: int
    """Elements that are requested and not delivered yet; `penstock.api.UNBOUNDED` for all.
    It grows at any time.
    """

    @abstractmethod
    async def wait_demand(self) -> int:
        """Return `demand` when it is above 0. Checkpoints."""

    @abstractmethod
    def put(self, elements: Sequence[bytes], /) -> None:
        """Deliver elements, `demand` of them at most. Does not checkpoint."""


class UrlSource(ABC):
    """A way to read the stream of a URL. One object serves the whole process;
    it holds no connection.
    """

    schemes: ClassVar[tuple[str, ...]]
    """The schemes of its URLs: small letters, digits, '.' and '-'."""

    why_no_connection: ClassVar[str]
    """Why `connect` cannot take such a URL, and what to use instead:
    the end of a sentence, for the UsageError.
    """

    @abstractmethod
    def check(self, url: str, options: SourceOptions) -> None:
        """Raise UsageError if `url`, as the program gave it, leads to no stream. Called by
        `remote`, before anything is opened.
        """

    @abstractmethod
    async def read(self, url: str, sink: ElementSink, options: SourceOptions) -> None:
        """Deliver the elements of the stream at `url` to `sink`, and return when it has completed.

        Raises a PenstockError if it fails: ConnectionLost, PublisherFailed, NotAvailable. A cancel
        means that the subscriber has cancelled: the peer is told within
        `TransportOptions.close_timeout`. Nothing of it is open when it has ended. Checkpoints.
        """

    def log_at(
        self, url: str, options: SourceOptions, *, read_only: bool = True, retention: Any = None
    ) -> AbstractAsyncContextManager[Any]:
        """Return the `penstock.Log` at `url`, to be opened with ``async with``: for reading, or
        with ``read_only=False`` and the `penstock.Retention` that the log needs to append to it.
        Raises UsageError, which is what a scheme without logs always does.
        """
        raise UsageError(f"{url!r} is read as a stream, and is no log that can be opened")
