"""The draft's calls at random steps, compared with models (D2.2, D3.2, D4.1 and,
for subscribers, D7.5).
"""

from penstock_tck._check import check
from penstock_tck._stream_model import DRAFT_PLACES, StreamModel
from penstock_tck._subscriber_model import SubscriberModelStage


class DraftModelChecks(StreamModel):
    """The check of a publisher against a model."""

    abstract = True

    @check("D2.2", "D3.2", "D4.1")
    async def random_calls_follow_the_model(self) -> None:
        """Opens many streams, and calls request_more and cancel between random steps of tasks.
        Expects that requests add up, that exactly that number of elements comes, and nothing after
        a cancel. Shrinks a script that fails.

        If this fails, look at what request_more and cancel do while a task is under way: a request
        must be counted once, and a cancel must be seen before the next element.
        """
        await self.play_on_streams(DRAFT_PLACES)


class DraftSubscriberModelChecks(SubscriberModelStage):
    """The check of a subscriber against a model."""

    abstract = True

    @check("D6.1", "D7.5", "D7.6", "D7.7")
    async def random_signals_follow_the_model_of_a_draft_subscriber(self) -> None:
        """Signals elements and the end at random steps and inside request_more, and tells the
        subscriber to request and to cancel. Expects that its handlers get each element once, in
        order, then the end, and that its requests add up. Shrinks a script that fails.

        If this fails, look at what lies between the signals and your handlers, and at what the
        subscriber does after request_more returns.
        """
        await self.play_on_subscribers()
