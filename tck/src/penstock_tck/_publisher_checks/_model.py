"""Requests and cancels at random places, compared with a model of the stream (rules 3.8, 3.12)."""

from penstock_tck._check import check
from penstock_tck._stream_model import PLACES, StreamModel


class ModelChecks(StreamModel):
    """The check against a model."""

    abstract = True

    @check("3.8", "3.12")
    async def random_requests_and_cancels_follow_the_model(self) -> None:
        """Opens many streams, and requests and cancels at random places: inside on_subscribe,
        inside on_next, between the steps of tasks. Expects that requests add up, that exactly that
        number of elements comes, and nothing after a cancel. Shrinks a script that fails.

        If this fails, look at what request() and cancel() do while a signal or a task is under way:
        a request must be counted once, and a cancel must be seen before the next element.
        """
        await self.play_on_streams(PLACES)
