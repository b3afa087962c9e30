"""Elements, requests, cancels and the end at random places,
compared with a model (rules 2.8 to 2.11, 3.8, 3.10, 3.11).
"""

from penstock_tck._check import check
from penstock_tck._subscriber_model import SubscriberModelStage


class SubscriberModelChecks(SubscriberModelStage):
    """The check of a subscriber against a model."""

    abstract = True

    @check("2.1", "2.8", "2.9", "2.10", "2.11")
    async def random_signals_follow_the_model_of_a_subscriber(self) -> None:
        """Signals elements and the end at random steps and inside requests, also inside those that
        are made in on_subscribe and on_next, and tells the subscriber to request and to cancel.
        Expects that its handlers get each element once, in order, then the end, and that its
        requests add up. Shrinks a script that fails.

        If this fails, look at the subscriber's code after its call of request(): an element or the
        end may have come before it returns. Look also at a signal that comes while an earlier one
        is still being handled.
        """
        await self.play_on_subscribers()
