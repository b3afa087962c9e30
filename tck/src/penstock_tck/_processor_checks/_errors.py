"""What a processor makes of an on_error from above: it passes it on at once, or recovers (rule 4.2)."""

from penstock_tck._capabilities import PASSES_ERRORS_ON
from penstock_tck._check import check
from penstock_tck._processor_stage import ProcessorStage


class ErrorChecks(ProcessorStage):
    """Checks of errors on their way through."""

    abstract = True

    @check("4.2", needs=[PASSES_ERRORS_ON])
    async def errors_pass_at_once_without_demand(self) -> None:
        """Fails above while nothing was requested below, and expects the same error object below.

        If this fails, look at on_error: it must go to the subscribers below at once, unwrapped, whatever they have requested.
        """
        upstream = await self.attached()
        error = ValueError("the source above failed")
        upstream.fail(error)
        await self.downstream.expect_error(error)
        await self.downstream.expect_nothing()
