"""request_more and cancel by the draft: on a cancelled subscription both raise (DP7 to DP16)."""

from penstock_tck._check import check
from penstock_tck._publisher_stage import PublisherStage


class DraftCallChecks(PublisherStage):
    """Checks of the draft's subscription."""

    abstract = True

    @check("D2.1", elements=3)
    async def request_more_on_a_cancelled_subscription_raises(self) -> None:
        """DP7: cancels, calls request_more(1), and expects an InvalidStateError and no signal.

        If this fails, look at request_more: the draft wants a call on a cancelled subscription refused, not ignored.
        """
        probe = await self.open(3)
        probe.cancel()
        self.expect_raise(self.profile.request_when_over_raises, probe.request, 1)
        await probe.expect_nothing()
