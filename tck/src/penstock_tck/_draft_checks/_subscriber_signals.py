"""How signals are taken by the draft: later, and calling nothing (DS1 to DS7)."""

from penstock_tck._subscriber_stage import SubscriberStage


class DraftSubscriberSignalChecks(SubscriberStage):
    """Checks of how the draft's subscribers take signals."""

    abstract = True
