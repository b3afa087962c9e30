"""Every hook that a plugin can write, typed and dated: when it is called, with what, what to return.

Rules of this file:

* A plugin is any object (a module, as a rule) that an entry point in the group ``penstock`` leads to; its hooks bear `hookimpl`.
* A hook is a plain function, and it is not `async`. It may leave out parameters that it does not need.
* The hooks that offer something are called once, when a registry is built. They return a list, an empty one for nothing.
* The hooks that observe are called as things happen. What they return is ignored, what they raise is logged, and goes no further.
* A hook that is misspelt, takes a parameter that is not there, raises, or returns something else: the whole plugin is left out.
"""

from collections.abc import Iterable
from typing import Final

import pluggy

from penstock.plugins._events import ConnectionClosed, ConnectionOpened, StreamEnded, StreamOpened
from penstock.plugins._factory import Factory
from penstock.plugins._serializer import Serializer
from penstock.plugins._transport import Transport

GROUP: Final = "penstock"
"""The group of entry points in which plugins are found."""

_spec: Final = pluggy.HookspecMarker(GROUP)

hookimpl: Final = pluggy.HookimplMarker(GROUP)
"""Marks a function of a plugin as the hook of its name: ``@hookimpl`` above ``def penstock_serializers():``."""


# --- what a plugin offers


@_spec
def penstock_transports() -> Iterable[Transport]:  # type: ignore[empty-body]  # a specification: pluggy never calls it
    """Ways to carry bytes or messages, one object each. Since 0.1.

    Called when a registry is built, once for each registry. A scheme that two plugins claim goes to neither of them.
    """


@_spec
def penstock_serializers() -> Iterable[Serializer]:  # type: ignore[empty-body]  # a specification
    """Ways to put elements into bytes and back, one object each. Since 0.1.

    Called when a registry is built. Publishers and subscribers ask for a serializer by its name.
    """


@_spec
def penstock_dialects() -> Iterable[Factory]:  # type: ignore[empty-body]  # a specification
    """Protocols, asked for in a URL before the '+': ``reactivesocket+tcp://…``. Since 0.1.

    Called when a registry is built. `Factory.make` is called for each connection that speaks it.
    """


@_spec
def penstock_encodings() -> Iterable[Factory]:  # type: ignore[empty-body]  # a specification
    """Ways to write the messages of RS.io other than the compact one; `Factory.id` is the id of the extension that negotiates it.

    Since 0.1.

    Called when a registry is built. `Factory.make` is called for each connection that has agreed on it.
    """


@_spec
def penstock_extensions() -> Iterable[Factory]:  # type: ignore[empty-body]  # a specification
    """Extensions of RS.io; `Factory.id` is what both hellos must list. Since 0.1.

    Called when a registry is built. `Factory.make` is called for each `connect` and `serve`, and returns an `Extension`; one that raises,
    or
    shares a code with another, is reported and left out. `Extension.open` is called for each connection on which both sides have it.
    """


# --- what a plugin may observe


@_spec
def penstock_connection_opened(event: ConnectionOpened) -> None:
    """A connection is ready. Called in its own task, before anything is exchanged on it by the application. Since 0.1."""


@_spec
def penstock_connection_closed(event: ConnectionClosed) -> None:
    """A connection is over; called exactly once for each that was opened. Since 0.1."""


@_spec
def penstock_stream_opened(event: StreamOpened) -> None:
    """A subscription has begun. Called for each one, and there may be very many: be quick. Since 0.1."""


@_spec
def penstock_stream_ended(event: StreamEnded) -> None:
    """A subscription is over; called exactly once for each that was opened, before its connection is reported closed. Since 0.1."""
