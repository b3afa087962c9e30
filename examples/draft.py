"""The early draft: its subscribers on penstock's publishers,
and its publishers in an `async for`.
"""

from collections.abc import AsyncIterator

import trio

import penstock
from penstock.draft import MailboxPolicy, as_draft, as_modern


async def letters() -> AsyncIterator[str]:
    """Three letters. The end of a generator shows only at the pull after its last element."""
    for letter in "abc":
        yield letter


class _Listener:
    """A subscriber as the draft has it: demand is named request_more."""

    subscription: penstock.draft.DraftSubscription

    def on_subscribe(self, subscription: penstock.draft.DraftSubscription) -> None:
        print("accepted")
        self.subscription = subscription

    def on_next(self, element: str) -> None:
        print("element", element)

    def on_error(self, error: BaseException) -> None:
        print("failed:", type(error).__name__)

    def on_complete(self) -> None:
        print("complete")


async def main() -> None:
    async with trio.open_nursery() as nursery:
        # D1.1: the end alone.
        as_draft(penstock.empty().publisher(nursery)).subscribe(_Listener())

        draft = as_draft(penstock.generate(letters).publisher(nursery))
        draft.subscribe(listener := _Listener())
        # D4.5: exact demand, and the end comes with the last element.
        listener.subscription.request_more(3)

    try:
        listener.subscription.cancel()  # D3.1: in today's standard a second cancel does nothing
    except penstock.api.InvalidStateError as error:
        print("refused:", str(error).split(";", maxsplit=1)[0])

    async with trio.open_nursery() as nursery:
        draft = as_draft(penstock.generate(letters).publisher(nursery))
        async with penstock.subscribe(as_modern(draft)) as stream:
            print("and back:", [letter async for letter in stream])

        draft.subscribe(
            penstock.MailboxSubscriber(nursery, print, demand=2, policy=MailboxPolicy.DRAFT)
        )


if __name__ == "__main__":
    trio.run(main)
