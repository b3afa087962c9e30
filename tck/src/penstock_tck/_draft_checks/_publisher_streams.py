"""Elements and ends by the draft (DP18 to DP21, DP23)."""

from penstock_tck._publisher_stage import PublisherStage


class DraftStreamChecks(PublisherStage):
    """Checks of the draft's streams."""

    abstract = True
