"""Finds out which publishers a target lacks, when a requirement that needs one has failed.

Rules of this file:

* A target lacks a publisher if it refuses the name in the words in which it refuses a name that
  does not exist. The requirement itself judges each other answer.
* A target is asked only after a failure, and once for each name:
  a target that has everything sees no connection more.
"""

from collections.abc import Awaitable, Callable, Iterable
from types import MappingProxyType
from typing import Final, TypeAlias

import trio

from penstock.api import PenstockError
from penstock_tck.wire import reactivesocket as rs
from penstock_tck.wire import rsio as io
from penstock_tck.wire._check_context import CheckContext
from penstock_tck.wire._named_request import named_request
from penstock_tck.wire._rsio_named_rows import connect_for_requests, request_data
from penstock_tck.wire._target import OFFERS, Target
from penstock_tck.wire._verdict import Failed, NotSupported

Refusal: TypeAlias = Callable[[CheckContext, str, str], Awaitable[str | None]]
"""Asks the target for an offer, a field of `Target`, by a name.

Returns the words in which the target refuses it, or None if the target does not refuse it.
"""

NO_PUBLISHERS: Final = frozenset({"refused"})
"""Offers that do not name a publisher, so the target cannot be asked for them."""

REQUESTS: Final = frozenset({"echo"})
"""Offers that are requests by name."""


class MissingPublishers:
    """The findings about publishers that the target lacks."""

    def __init__(
        self,
        target: Target,
        make_context: Callable[[trio.Nursery], CheckContext],
        refusal: Refusal | None,
    ) -> None:
        """`refusal` asks for a name;
        None if the protocol has no such question, and then nothing is found.
        """
        self._target = target
        self._make_context = make_context
        self._refusal = refusal
        # For each offer that was asked for: the words, None if the target has it.
        self._found: dict[str, str | None] = {}

    def known(self, needs: Iterable[str]) -> dict[str, str]:
        """Return those of the offers that the target lacks, with its words,
        as far as it was asked.
        """
        return {offer: words for offer in needs if (words := self._found.get(offer)) is not None}

    async def find(self, needs: Iterable[str]) -> dict[str, str]:
        """Ask the target for those of the offers that it was not asked for,
        and return what `known` returns then.
        """
        offers = [offer for offer in needs if offer not in NO_PUBLISHERS]
        for offer in offers:
            if offer not in self._found:
                self._found[offer] = await self._words_if_missing(offer)
        return self.known(offers)

    async def _words_if_missing(self, offer: str) -> str | None:
        words = await self._ask(offer, getattr(self._target, offer))
        return (
            words
            if words is not None and words == await self._ask(offer, self._target.missing)
            else None
        )

    async def _ask(self, offer: str, name: str) -> str | None:
        if self._refusal is None:
            return None
        words = None
        async with trio.open_nursery() as nursery:
            context = self._make_context(nursery)
            with trio.move_on_after(self._target.patience):
                try:
                    words = await self._refusal(context, offer, name)
                except (Failed, NotSupported, PenstockError):
                    # The target breaks the protocol here as well: the requirement has said so.
                    words = None
            with trio.move_on_after(self._target.patience, shield=True):
                await context.close()
            nursery.cancel_scope.cancel()
        return words


def missing_text(target: Target, missing: dict[str, str]) -> str:
    """Return what a report says of a requirement whose publishers the target lacks."""
    return "; ".join(
        f"the target has no {getattr(target, offer)!r}, and refuses it as a name that does not "
        f"exist ({words}): {offer} {OFFERS[offer]}; name another one with --{offer}, or say "
        f"--without {offer}"
        for offer, words in missing.items()
    )


async def rsio_refusal(context: CheckContext, offer: str, name: str) -> str | None:
    """Subscribe over RS.io, or send a request with an empty payload."""
    if offer in REQUESTS:
        peer, data = await connect_for_requests(context), named_request(name, b"")
        await peer.send(request_data(1, data, len(data)))
    else:
        peer = await context.connect_rsio()
        await peer.subscribe(1, 1, name)
    await peer.wait_until(lambda: peer.of_stream(1), "an answer")
    first = peer.of_stream(1)[0]
    return str(first) if first.type == io.ON_ERROR else None


async def reactivesocket_refusal(context: CheckContext, offer: str, name: str) -> str | None:
    """Request a stream over ReactiveSocket, or a response to an empty payload."""
    peer = await context.connect_reactivesocket()
    if offer in REQUESTS:
        await peer.send_frame(rs.REQUEST_RESPONSE, 1, named_request(name, b""))
    else:
        await peer.request(1, 1, name)
    await peer.wait_until(lambda: peer.of_stream(1), "an answer")
    first = peer.of_stream(1)[0]
    return str(first) if first.type == rs.ERROR else None


REFUSALS: Final = MappingProxyType({"rsio": rsio_refusal, "reactivesocket": reactivesocket_refusal})
"""How a target of each protocol is asked for a name."""
