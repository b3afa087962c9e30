"""What a plugin offers besides transports and serializers: a name, and what makes the thing."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Factory:
    """A dialect, an encoding or an extension: its name, and a factory that is called when a connection wants one."""

    name: str
    """Small letters, digits, '.' and '-': ``reactivesocket``, ``msgpack``, ``keepalive``."""

    make: Callable[..., object]
    """Makes one. With what it is called, and what it must return, is said where the thing itself is documented."""

    id: int | None = None
    """The number that stands for it on the wire, where it has one. Ours are below 128; yours begin at 128."""

    summary: str = ""
    """One line for people."""
