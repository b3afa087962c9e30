"""The modern checks of subscribers, one theme per file. `SubscriberChecks` has all of them.

============================  =======================================================
_demand.py                    2.1 2.8 3.8: requesting, and accepting what was requested
_endings.py                   2.3 2.4 2.9 2.10: on_error, on_complete, and no call after them
_subscriptions.py             2.5 2.6 2.12: one subscription, and when it is cancelled
_signals.py                   2.2 2.7 2.11 2.13: how signals are handled
_model.py                     2.1 2.8 to 2.11: signals at random places, against a model
============================  =======================================================

A check drives the subscriber with `upstream = await self.attach_fresh()`, a `ManualPublisher`;
`self.make_request(n)` makes it request.
"""

from penstock_tck._subscriber_checks._demand import SubscriberDemandChecks
from penstock_tck._subscriber_checks._endings import SubscriberEndingChecks
from penstock_tck._subscriber_checks._model import SubscriberModelChecks
from penstock_tck._subscriber_checks._signals import SubscriberSignalChecks
from penstock_tck._subscriber_checks._subscriptions import SubscriberSubscriptionChecks


class SubscriberChecks(
    SubscriberDemandChecks,
    SubscriberEndingChecks,
    SubscriberSubscriptionChecks,
    SubscriberSignalChecks,
    SubscriberModelChecks,
):
    """All modern checks of subscribers."""

    abstract = True


__all__ = ["SubscriberChecks"]
