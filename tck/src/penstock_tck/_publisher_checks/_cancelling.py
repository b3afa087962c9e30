"""cancel() itself, and that the signals stop (rules 1.8, 3.5, 3.6, 3.7, 3.12, 3.15)."""

from penstock_tck._publisher_stage import PublisherStage


class CancellingChecks(PublisherStage):
    """Checks of cancel()."""

    abstract = True
