"""Logs on NATS JetStream: `JetStreamLog`.

The names are imported at their first use: a registry needs the hooks alone.
"""

import importlib as _importlib
import typing as _typing

from penstock_nats._hooks import penstock_sources

if _typing.TYPE_CHECKING:
    from penstock_nats._log import JetStreamLog as JetStreamLog

__all__ = ["JetStreamLog", "penstock_sources"]

_HOMES: _typing.Final = {"JetStreamLog": "_log"}


def __getattr__(name: str) -> _typing.Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'penstock_nats' has no attribute {name!r}")
    return getattr(_importlib.import_module(f"penstock_nats.{_HOMES[name]}"), name)
