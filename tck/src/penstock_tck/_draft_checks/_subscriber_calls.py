"""What a subscriber calls by the draft, and what it accepts (DS8 to DS15)."""

from penstock_tck._subscriber_stage import SubscriberStage


class DraftSubscriberCallChecks(SubscriberStage):
    """Checks of what the draft's subscribers call."""

    abstract = True
