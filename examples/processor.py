"""A processor object between a library that publishes and one that subscribes, and the same by
the rules of the early draft.
"""

import trio

import penstock
from penstock import ops
from penstock.draft import MailboxPolicy, as_draft, draft_processor


class _Display:
    """A subscriber of a library, which takes two elements and leaves."""

    def on_subscribe(self, subscription: penstock.Subscription) -> None:
        self.subscription = subscription
        subscription.request(2)

    def on_next(self, element: str) -> None:
        print("display:", element)
        if element == "20 °C":
            self.subscription.cancel()

    def on_error(self, error: BaseException) -> None:
        print("display failed:", error)

    def on_complete(self) -> None:
        print("display is done")


async def main() -> None:
    async with trio.open_nursery() as nursery:
        readings = penstock.from_iterable([18.6, 20.2, 21.4]).publisher(nursery)

        processor = penstock.processor(nursery, ops.map("{:.0f} °C".format))
        processor.subscribe(_Display())
        async with penstock.subscribe(processor) as stream:
            readings.subscribe(processor)  # one subscription for all of them
            async for text in stream:
                print("logged:", text)

        draft = draft_processor(nursery, penstock.processor(nursery, ops.map("{:.0f} °C".format)))
        draft.subscribe(penstock.MailboxSubscriber(nursery, print, policy=MailboxPolicy.DRAFT))
        as_draft(readings).subscribe(draft)


if __name__ == "__main__":
    trio.run(main)
