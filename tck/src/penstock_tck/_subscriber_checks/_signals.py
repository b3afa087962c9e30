"""How signals are taken: they return, refuse None, and leave slow work for later (rules 2.2, 2.7, 2.11, 2.13)."""

from penstock_tck._subscriber_stage import SubscriberStage


class SubscriberSignalChecks(SubscriberStage):
    """Checks of how signals are taken."""

    abstract = True
