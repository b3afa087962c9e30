"""A service with one publisher more, for one server of it.

Rules of this file:

* The service itself is not changed: another server of it does not offer that publisher.
* Everything else is shared, and stays so: what the program adds later is offered here too.
"""

from collections import ChainMap
from collections.abc import Callable, Collection
from copy import copy
from typing import Any

from penstock.api import UsageError
from penstock.runtime.service._router import NoMatch, Route, Router
from penstock.runtime.service._service import Service


def with_publisher(
    service: Service, name: str, function: Callable[..., Any], *, serializer: str
) -> Service:
    """Return `service` with `function` under `name` as well. Raises UsageError if the service has
    a publisher of that name.
    """
    extended = copy(service)
    extended.router = _Extended(service.router)
    # What is added goes into the first table alone.
    options: Any = ChainMap({}, service.options)
    extended.options = options
    extended.publisher(name, serializer=serializer)(function)
    return extended


class _Extended(Router):
    """The routes of a service, and own ones before them."""

    def __init__(self, other: Router) -> None:
        super().__init__()
        self._other = other
        both: Any = _Either(self.literal_names, other)
        self.literal_names = both
        self.patterns = other.patterns

    def add(self, route: Route) -> None:
        try:
            self._other.find(route.pattern.text)
        except NoMatch:
            super().add(route)
        else:
            raise UsageError(
                f"the service has a publisher or a request named {route.pattern.text!r}; give it "
                "another name"
            )

    def find(self, name: str) -> tuple[Route, dict[str, str], dict[str, list[str]]]:
        # An own name has no parameters, and comes first.
        if name in self._literal:
            return super().find(name)
        return self._other.find(name)

    @property
    def has_names(self) -> bool:
        return True

    def routes(self) -> list[Route]:
        return sorted(
            [*super().routes(), *self._other.routes()], key=lambda route: route.pattern.text
        )

    def names(self) -> list[str]:
        return sorted([*super().names(), *self._other.names()])


class _Either:
    """Literal names: own ones, and those that the other router has now."""

    def __init__(self, own: set[bytes], other: Router) -> None:
        self._own = own
        self._other = other

    def add(self, name: bytes) -> None:
        """Add an own name."""
        self._own.add(name)

    def __contains__(self, name: bytes) -> bool:
        names: Collection[bytes] = self._other.literal_names
        return name in self._own or name in names

    def __bool__(self) -> bool:
        return True
