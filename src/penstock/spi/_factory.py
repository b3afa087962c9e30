"""A dialect, an encoding or an extension as a plugin offers it:
a name, and a function that makes it.
"""

from collections.abc import Callable

import attrs


@attrs.frozen(kw_only=True)
class Factory:
    """A dialect, an encoding or an extension:
    its name, and the function that makes one when a connection needs it.
    """

    name: str
    """Lower-case letters, digits, '.' and '-': ``reactivesocket``, ``msgpack``, ``keepalive``."""

    make: Callable[..., object]
    """Makes one. The hook that the factory is offered through documents the arguments
    and the result.
    """

    id: int | None = None
    """Its number on the wire, if it has one. Numbers below 128 are penstock's;
    yours begin at 128.
    """

    on_demand: bool = False
    """Of an extension: it is made with arguments, if an option of the program needs it,
    and is not negotiated otherwise.
    """

    summary: str = ""
    """One line for people."""
