"""The test kit over remote publishers, for one transport of each kind.

The kit collects the classes that this file imports. whole_remote_publishers.py has the others.
"""

from tests.tck._remote_publishers import (
    OverMemory,
    OverTcp,
    OverTls,
    ReactiveSocketOverFramedMemory,
    ReactiveSocketOverTcp,
    RemoteUrl,
    RemoteUrlOverReactiveSocket,
    SubscriptionOverReactiveSocket,
)

__all__ = [
    "OverMemory",
    "OverTcp",
    "OverTls",
    "ReactiveSocketOverFramedMemory",
    "ReactiveSocketOverTcp",
    "RemoteUrl",
    "RemoteUrlOverReactiveSocket",
    "SubscriptionOverReactiveSocket",
]
