"""What the draft wants of processors beyond both sides' rules (DX1 to DX7)."""

from penstock_tck._processor_stage import ProcessorStage


class DraftProcessorChecks(ProcessorStage):
    """Checks of the draft's processors."""

    abstract = True
