"""What every worker of a server is started with.

It is pickled: the parent and its workers are one program of one user, and the settings are objects
of that program. Bytes of a client never come near it.
"""

import pickle
from dataclasses import replace
from typing import Any

import attrs

from penstock.api import Credentials, Limits, UsageError
from penstock.spi import TransportOptions


@attrs.frozen(kw_only=True)
class WorkerSettings:
    """The arguments of `serve_workers` that the workers need."""

    service: str
    """``module:service``."""
    urls: tuple[str, ...]
    limits: Limits
    options: TransportOptions
    credentials: Credentials | None = None
    main: str | None = None
    """``module:function``, or None."""
    resume: bool = False
    insecure: bool = False
    inspect: bool = False
    safe_path: bool = False
    """Do not search the current folder for modules."""
    is_verbose: bool = False
    """Write the logs of penstock to standard error, the access log included."""
    log_format: str = "text"
    """How the logs are written: ``text`` or ``json``."""

    def pickled(self) -> bytes:
        """Return them for another process. Raises UsageError for an object that cannot go there."""
        # The view of a mapping cannot be pickled, and a plain one can.
        plain = attrs.evolve(self, options=replace(self.options, extra=dict(self.options.extra)))
        try:
            return pickle.dumps(plain)
        except Exception as error:  # boundary: an object of the program
            raise UsageError(
                f"an argument of serve_workers() cannot be sent to a worker: {error}. Give "
                "Tls(certificate=…, key=…) in place of Tls(context=…), and plain values in "
                "TransportOptions.extra"
            ) from error


def unpickled(data: bytes) -> WorkerSettings:
    """Return what `WorkerSettings.pickled` has made."""
    settings: Any = pickle.loads(data)  # noqa: S301 (the reason is the docstring of this file)
    assert isinstance(settings, WorkerSettings)  # noqa: S101 (the parent has made it)
    return settings
