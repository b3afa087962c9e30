"""A user's function that answers requests, or takes messages:
its parameters, and whether it can be called directly.
"""

import inspect
from copy import copy
from functools import partial
from typing import Any

from penstock.api import Request, UsageError
from penstock.runtime.service._function_annotations import (
    Annotations,
    check_function,
    open_parameters,
)
from penstock.runtime.service._router import check_peer_annotations
from penstock.runtime.service._text_parameters import without_none
from penstock.spi import PeerIdentity


class Handler:
    """A user's function that takes data and, if it wants them, the identity of the peer and the
    request.
    """

    __slots__ = (
        "_function",
        "_takes_peer",
        "_takes_request",
        "is_generator",
        "label",
        "pattern",
        "plain",
        "takes_request",
    )

    def __init__(self, function: Any, what: str) -> None:
        called = check_function(function, what)
        parameters, annotations = (
            open_parameters(function, what),
            Annotations(function, f"{what} {function!r}"),
        )
        hints = {name: annotations.of(name) for name in parameters}
        check_peer_annotations(hints, f"{what} {function!r}")
        self._takes_peer = [
            name for name, hint in hints.items() if without_none(hint) is PeerIdentity
        ]
        self._takes_request = [
            name for name, hint in hints.items() if without_none(hint) is Request
        ]
        self.takes_request: bool = bool(self._takes_request)
        """`given` must be called before the handler is."""
        # Tried once, here: a signature that does not fit would otherwise fail each request of a
        # peer.
        signature = inspect.signature(function)
        try:
            signature.bind(b"", **dict.fromkeys(self._takes_peer + self._takes_request))
        except TypeError:
            raise UsageError(
                f"{what} {function!r} takes {signature}; give it one parameter for the data, and "
                "if you like one annotated PeerIdentity, and one annotated Request"
            ) from None
        self._function = function
        # The usual function wants nothing else, and this call is on the path of every request.
        self.plain: Any = None if self._takes_peer or self._takes_request else function
        """The function itself if it takes the data alone, else None."""
        self.label: str = getattr(function, "__qualname__", what)
        self.pattern: str = ""
        """The name under which the service offers it; empty for a handler of requests without."""
        # `called`: inspect does not look at the `__call__` of an object.
        self.is_generator: bool = inspect.isasyncgenfunction(called)

    def __call__(self, data: bytes, peer: PeerIdentity) -> Any:
        # By keyword: a parameter after a `*` may also take the identity.
        return (
            self._function(data, **dict.fromkeys(self._takes_peer, peer))
            if self._takes_peer
            else self._function(data)
        )

    def given(self, request: Request) -> "Handler":
        """Return the handler for one request."""
        bound = copy(self)
        taken = dict.fromkeys(self._takes_request, request)
        bound._function = partial(self._function, **taken)  # noqa: SLF001  # of the same class
        bound.takes_request = False
        return bound
