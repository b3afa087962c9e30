"""Reactive Streams for trio: data flows at the pace of its consumer.

The layers, from the lowest up; each folder is a layer and is imported through its ``__init__``:

* `penstock.api`: the vocabulary: the four interfaces, demand, every exception.
* `penstock.reader`: the reader's end of a stream, without I/O and without trio.
* `penstock.core`: what streams rest on: scopes own tasks, a pump pulls an iterator, guards.
* `penstock.streams`: streams inside one process: sources, `subscribe`, sinks, topics. The operators
  are `penstock.streams.ops`.
* `penstock.logs`: elements that are kept at positions and replayed, in memory and in a file.
* `penstock.draft`: adapters to the early draft of the standard.
* `penstock.spi`: everything that a plugin imports. `penstock.elements`, `penstock.transports`,
  `penstock.extensions` and `penstock.protocols` are the plugins that penstock ships.
* `penstock.wire`, `penstock.session`: decoding and the state of a connection, without I/O.
  `penstock.runtime`: `connect` and `serve` on trio.
* `penstock.blocking`, `penstock.aio`: clients without trio, for scripts and for programs on
  asyncio. Both rest on `penstock.client`.
* `penstock.notebook`: a table that a notebook draws.
* `penstock.cli`: the command ``penstock``.
* `penstock.testing`: helpers for tests of your publishers and subscribers.

The names that most programs need are here; `ops` is short for `penstock.streams.ops`. Those
that need trio are imported at their first use.
"""

# This import comes first: an interrupt during the others must find the hook in place.
from penstock import _quiet_interrupt  # noqa: F401  # imported for its effect

# isort: split
import importlib as _importlib
import importlib.util as _util
import sys as _sys
import types as _types
import typing as _typing

from penstock._elsewhere import HOMES as _HOMES
from penstock._elsewhere import missing as _missing
from penstock.api import UNBOUNDED as UNBOUNDED
from penstock.api import AlreadySubscribed as AlreadySubscribed
from penstock.api import AuthRefused as AuthRefused
from penstock.api import ConnectionLost as ConnectionLost
from penstock.api import Credentials as Credentials
from penstock.api import LimitExceeded as LimitExceeded
from penstock.api import Limits as Limits
from penstock.api import NoElement as NoElement
from penstock.api import NotAvailable as NotAvailable
from penstock.api import PenstockError as PenstockError
from penstock.api import PositionNotRetained as PositionNotRetained
from penstock.api import ProtocolError as ProtocolError
from penstock.api import PublicError as PublicError
from penstock.api import Publisher as Publisher
from penstock.api import PublisherFailed as PublisherFailed
from penstock.api import Rejected as Rejected
from penstock.api import RuleViolation as RuleViolation
from penstock.api import SlowSubscriber as SlowSubscriber
from penstock.api import StreamState as StreamState
from penstock.api import StreamTimeout as StreamTimeout
from penstock.api import Subscriber as Subscriber
from penstock.api import Subscription as Subscription
from penstock.api import UsageError as UsageError
from penstock.api import partition_of as partition_of

if _typing.TYPE_CHECKING:
    # The layers that `penstock.aio` and the like import at their first use.
    from penstock import aio as aio
    from penstock import api as api
    from penstock import blocking as blocking
    from penstock import brokers as brokers
    from penstock import draft as draft
    from penstock import elements as elements
    from penstock import extensions as extensions
    from penstock import logs as logs
    from penstock import notebook as notebook
    from penstock import spi as spi
    from penstock import streams as streams
    from penstock import testing as testing
    from penstock import transports as transports
    from penstock._everyday import *  # noqa: F403  # each name of that file is one of this package
    from penstock.spi import Reconnect as Reconnect
    from penstock.spi import Record as Record

__version__ = "0.1.0"

_OF_SPI = ("Reconnect", "Record")
"""Everyday names that need no trio, but msgspec and pluggy, for which the help does not wait."""


def _import_at_first_use(name: str) -> _typing.Any:
    """Import a layer, or the everyday names, at the first use of one of them (PEP 562).

    ``__all__`` is made of these names, so that each of them is written once.
    """
    if name == "__all__":
        return _public_names()
    if name in _OF_SPI:
        spi = _importlib.import_module("penstock.spi")
        globals().update({each: getattr(spi, each) for each in _OF_SPI})
        return globals()[name]
    if not name.startswith("_"):
        # A layer first: `from penstock import blocking` asks for that name here, and must not
        # import trio.
        if _util.find_spec(f"penstock.{name}") is not None:
            return _importlib.import_module(f"penstock.{name}")
        everyday = _everyday_names()
        if name in everyday:
            globals().update(everyday)
            return everyday[name]
    raise _missing(__name__, name, _sys._getframe(1))  # noqa: SLF001  # of the import


if not _typing.TYPE_CHECKING:  # a checker would take each name for one of this package
    __getattr__ = _import_at_first_use


def __dir__() -> list[str]:
    return sorted({*globals(), *_public_names(), *_HOMES})


def _everyday_names() -> dict[str, _typing.Any]:
    """Return the names of `penstock._everyday` with their values: all that the file imports."""
    everyday = _importlib.import_module("penstock._everyday")
    return {name: value for name, value in vars(everyday).items() if not name.startswith("_")}


def _public_names() -> list[str]:
    """Return ``__all__``: the names without an underscore, except the layers."""
    at_once = {
        name
        for name, value in globals().items()
        if not name.startswith("_") and not isinstance(value, _types.ModuleType)
    }
    return sorted({*at_once, *_OF_SPI, *_everyday_names()})
