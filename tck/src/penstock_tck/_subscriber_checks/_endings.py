"""How a subscriber takes the end, and that it calls nothing after it (rules 2.3, 2.4, 2.9, 2.10)."""

from penstock_tck._subscriber_stage import SubscriberStage


class SubscriberEndingChecks(SubscriberStage):
    """Checks of on_error and on_complete."""

    abstract = True
