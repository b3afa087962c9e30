"""The options of `connect` and `remote` on trio, beside those of every client."""

from penstock.client import StreamOptions, TrioOptions
from penstock.core import Report
from penstock.runtime.service import Service


class TrioClientOptions(TrioOptions, total=False):
    """The options of a connection that `client_settings` checks."""

    on_violation: Report
    """Gets failures that no call can raise, such as those of publishers."""


class TrioConnectOptions(TrioClientOptions, total=False):
    """The options of `connect`."""

    service: Service | None
    """What the peer may subscribe to."""


class RemoteOptions(TrioOptions, StreamOptions, total=False):
    """The options of `remote`, except `type`, which decides what a call returns."""

    publisher: str | None
    """The name of the publisher. None: the URL has it."""
