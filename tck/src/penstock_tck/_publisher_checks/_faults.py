"""Sources that raise, and subscribers that raise (rules 1.4, 1.9, 2.13)."""

from penstock_tck._publisher_stage import PublisherStage


class FaultChecks(PublisherStage):
    """Checks of what a publisher makes of other people's exceptions."""

    abstract = True
