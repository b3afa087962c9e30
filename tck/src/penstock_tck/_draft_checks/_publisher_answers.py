"""What subscribe() answers by the draft (DP1 to DP6, DP17, DP22)."""

from penstock_tck._publisher_stage import PublisherStage


class DraftAnswerChecks(PublisherStage):
    """Checks of the draft's subscribe()."""

    abstract = True
