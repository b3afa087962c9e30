"""One signal after the other, in the run's thread (rules 1.3, 2.11)."""

from penstock_tck._publisher_stage import PublisherStage


class SerialChecks(PublisherStage):
    """Checks of the order and the thread of signals."""

    abstract = True
