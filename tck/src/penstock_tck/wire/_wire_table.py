"""The requirements of a protocol, and the way to a server that speaks it. A distribution that is
installed brings its own tables.

Rules of this file:

* An entry point of the group `GROUP` leads to a `WireTable`.
  It is loaded only for a URL that no table of the kit is for.
* A protocol that is written before the '+' of a URL is one of the kit. A table of a plugin is
  chosen by the scheme of the URL.
"""

from collections.abc import Sequence
from importlib.metadata import entry_points
from typing import Final

import attrs

from penstock.api import UsageError
from penstock.spi import Url
from penstock_tck.wire._check_context import Connect
from penstock_tck.wire._missing_publishers import REFUSALS, Refusal
from penstock_tck.wire._requirement import Requirement
from penstock_tck.wire._tables import TABLES

GROUP: Final = "penstock_tck"
"""The group of entry points that lead to tables."""

DEFAULT: Final = "rsio"


@attrs.frozen(kw_only=True)
class WireTable:
    """The requirements that a server at a URL must keep, and those for clients."""

    rows: Sequence[Requirement]
    """The requirements, in the order in which they are checked."""

    clients: Sequence[Requirement] = ()
    """The requirements for clients, in the order in which they are checked. Where a server has
    offers, a client does what the check tells it on the connection. Empty: clients cannot be
    checked.
    """

    schemes: tuple[str, ...] = ()
    """The schemes of the URLs that the table is for: ``("http", "https")``."""

    connect: Connect | None = None
    """Opens a connection to the server. None: the transport of the URL does."""

    refusal: Refusal | None = None
    """Asks the server for a name, and returns its words if it refuses the name. With it a publisher
    that the server lacks is told from one that breaks a requirement; None: each is a failure.
    """


def table_for(url: Url) -> WireTable:
    """Return the table for a URL. Raises UsageError if no table is for it."""
    if url.dialect is not None:
        return table_named(url.dialect)
    for entry in entry_points(group=GROUP):
        table = entry.load()
        if isinstance(table, WireTable) and url.transport in table.schemes:
            return table
    return WireTable(rows=TABLES[DEFAULT], refusal=REFUSALS[DEFAULT])


def table_named(name: str) -> WireTable:
    """Return the table of a protocol of the kit, or the table of a plugin by the name of its
    entry point. Raises UsageError.
    """
    if name in TABLES:
        return WireTable(rows=TABLES[name], refusal=REFUSALS[name])
    entries = {entry.name: entry for entry in entry_points(group=GROUP)}
    table = entries[name].load() if name in entries else None
    if isinstance(table, WireTable):
        return table
    names = ", ".join(sorted({*TABLES, *entries}))
    raise UsageError(f"there is no table of requirements for {name!r}; there is one for {names}")
