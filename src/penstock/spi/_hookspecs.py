"""Every hook that a plugin can implement, typed: when it is called, with which arguments, what to
return, and since which version.

Rules of this file:

* A plugin is any object (usually a module) that an entry point in the group ``penstock`` names. Its
  hooks are marked with `hookimpl`.
* A hook is a plain function, not an async one. It may omit parameters that it does not need.
* A hook that offers something is called once for each registry that is built.
  It returns a list, an empty one for nothing.
* A hook that observes is called when the event happens. Its result is ignored. An exception that it
  raises is logged and goes no further.
* If one hook is misspelt, takes an unknown parameter, raises or returns another type,
  the whole plugin is left out.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

import pluggy

from penstock.api import SignalTap
from penstock.spi._events import (
    ConnectionClosed,
    ConnectionOpened,
    ConnectionRefused,
    ConnectionResumed,
    ConnectionSuspended,
    ReconnectEvent,
    StreamEnded,
    StreamOpened,
)
from penstock.spi._factory import Factory
from penstock.spi._finding import GROUP
from penstock.spi._serializer import Serializer
from penstock.spi._statistics import Fact
from penstock.spi._url_source import UrlSource

if TYPE_CHECKING:
    from penstock.spi._transport import Transport

_spec: Final = pluggy.HookspecMarker(GROUP)

hookimpl: Final = pluggy.HookimplMarker(GROUP)
"""Marks a function of a plugin as the hook of its name: ``@hookimpl`` above
``def penstock_serializers():``.
"""


# --- hooks that offer something


@_spec
def penstock_transports() -> "Iterable[Transport]":  # type: ignore[empty-body]  # a specification: pluggy never calls it
    """Transports: ways to carry bytes or messages, one object each. Since 0.1.

    Called once for each registry. A scheme that two plugins claim goes to neither of them.
    """


@_spec
def penstock_sources() -> Iterable[UrlSource]:  # type: ignore[empty-body]  # a specification
    """Schemes of URLs that `remote` and `subscribe` read without a connection, one object each.
    Since 0.1.

    Called once for each registry. `connect` refuses such a URL, and says why
    (`UrlSource.why_no_connection`). A transport may have the same scheme, for `serve`. A scheme
    that two plugins claim here goes to neither of them.
    """


@_spec
def penstock_serializers() -> Iterable[Serializer]:  # type: ignore[empty-body]  # a specification
    """Serializers: ways to convert elements to bytes and back, one object each. Since 0.1.

    Called once for each registry. Publishers and subscribers select a serializer by its name.
    """


@_spec
def penstock_dialects() -> Iterable[Factory]:  # type: ignore[empty-body]  # a specification
    """Protocols, selected in a URL before the '+': ``reactivesocket+tcp://…``. Since 0.1.

    Called once for each registry. `Factory.make` is called for each connection that speaks it.
    """


@_spec
def penstock_encodings() -> Iterable[Factory]:  # type: ignore[empty-body]  # a specification
    """Encodings of RS.io messages other than the compact one. `Factory.id` is the id of the
    extension that negotiates it. Since 0.1.

    Called once for each registry. A server lists all of them in its hello; a client lists the one
    that ``connect(encoding=…)`` names. `Factory.make` is called without arguments for each
    connection on which both sides have agreed on it, and returns a
    `penstock.protocols.rsio.Encoding`. Ids begin at 128;
    16 and 17 belong to ``penstock-msgpack`` and ``penstock-protobuf``.
    """


@_spec
def penstock_extensions() -> Iterable[Factory]:  # type: ignore[empty-body]  # a specification
    """Extensions of RS.io; both hellos must list `Factory.id`. Since 0.1.

    Called once for each registry. `Factory.make` is called for each `connect` and `serve`, and
    returns an `Extension`. If it raises, or if the extension claims a code that another one has,
    this is reported and the extension is left out. `Extension.open` is called for each connection
    on which both sides have the extension.
    """


@_spec
def penstock_reads() -> Iterable[Fact]:  # type: ignore[empty-body]  # a specification
    """Facts that the plugin reads from statistics, and that are kept for it only. Since 0.1.

    Called once for each registry. A fact is kept from then on, also before the plugin asks for it:
    so it is right when it is asked for the first time.
    """


# --- hooks that observe


@_spec
def penstock_connection_opened(event: ConnectionOpened) -> None:
    """A connection has opened. Called in the connection's task,
    before the application exchanges anything on it. Since 0.1.
    """


@_spec
def penstock_connection_closed(event: ConnectionClosed) -> None:
    """A connection has ended. Called exactly once for each connection that was opened.
    Since 0.1.
    """


@_spec
def penstock_connection_refused(event: ConnectionRefused) -> None:
    """A server has refused a connection. Called once for each, instead of the two hooks above;
    perhaps 1,000 times a second. Since 0.1.
    """


@_spec
def penstock_stream_opened(event: StreamOpened) -> None:
    """A subscription has begun. Called for every subscription of every connection: be quick.
    Since 0.1.
    """


@_spec
def penstock_signals(event: StreamOpened) -> SignalTap | None:
    """A subscription has begun: return a tap that gets a row for each of its signals, or None.
    Since 0.1.

    Called once for each subscription of every connection, behind ``penstock_stream_opened``. A
    stream without a tap costs nothing more.
    A tap that raises gets no more rows of its stream.
    """


@_spec
def penstock_stream_ended(event: StreamEnded) -> None:
    """A subscription has ended. Called exactly once for each that was opened, before its
    connection is reported closed. Since 0.1.
    """


@_spec
def penstock_reconnect(event: ReconnectEvent) -> None:
    """A client with a policy to reconnect has lost its connection, will try again, is back,
    or gives up. Since 0.1.

    Called at each of these steps; `ReconnectEvent.stage` says which.
    """


@_spec
def penstock_connection_suspended(event: ConnectionSuspended) -> None:
    """A connection with ``resume=True`` has lost its transport and is kept. Called each time;
    its streams have not ended. Since 0.1.
    """


@_spec
def penstock_connection_resumed(event: ConnectionResumed) -> None:
    """A suspended connection goes on over another transport. Called once for each time;
    `ConnectionClosed` if it does not. Since 0.1.
    """
