"""What subscribe() answers, and what several subscribers get (rules 1.9, 1.10, 1.11, 2.12)."""

from penstock_tck._publisher_stage import PublisherStage


class SubscribingChecks(PublisherStage):
    """Checks of subscribe()."""

    abstract = True
