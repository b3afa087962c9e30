"""Demand, completion and cancel on their way through a processor (rule 4.1)."""

from penstock_tck._processor_stage import ProcessorStage


class BothSidesChecks(ProcessorStage):
    """Checks that need both sides of a processor at a time."""

    abstract = True
