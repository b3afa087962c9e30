"""request() itself: where it may be called, how deep it recurses, what it refuses, that it returns (rules 3.2, 3.3, 3.4, 3.9, 3.16)."""

from typing import Any

from penstock_tck._check import check
from penstock_tck._publisher_stage import PublisherStage


class RequestingChecks(PublisherStage):
    """Checks of request()."""

    abstract = True

    @check("3.9", elements=10)
    async def request_zero_is_answered_with_on_error(self) -> None:
        """Requests 0 and expects on_error(ValueError), then silence.

        If this fails, look at how request() treats its argument: check it first, and signal on_error instead of raising.
        """
        await self._refused(0)

    @check("3.9", elements=10)
    async def request_below_zero_is_answered_with_on_error(self) -> None:
        """Requests -1, and on a fresh stream -2^63, and expects on_error(ValueError), then silence.

        If this fails, look at how request() treats its argument: check it first, and signal on_error instead of raising.
        """
        await self._refused(-1)
        await self._refused(-(2**63))

    @check("3.9", elements=10, optional=True)
    async def the_refusal_of_a_demand_explains_itself(self) -> None:
        """Requests -1 and expects the error's text to name rule 3.9, or to speak of a non-positive or negative request.

        If this fails, look at the text of the error: whoever reads it must learn that demand is at least 1.
        """
        error = await self._refused(-1)
        text = str(error).lower()
        explained = any(words in text for words in ("3.9", "non-positive", "not positive", "negative", "at least 1"))
        self.verify(explained, f"the text of the error does not say what was wrong: {str(error)!r}")

    async def _refused(self, n: Any) -> BaseException:
        probe = await self.open(10)
        probe.request(n)
        error = await probe.expect_error(ValueError)
        await probe.expect_nothing()
        return error
