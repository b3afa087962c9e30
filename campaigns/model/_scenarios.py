"""The conversations that are walked:
what each side may do, in every order that its own rules leave.

A stream's script is what its subscriber and its publisher do. Their steps are ordered only as
Reactive Streams orders them: elements follow demand, an end follows the elements, a cancel may come
at any time.
"""

from enum import Enum
from typing import Final

import attrs

from penstock.api import Limits, Role


class Ending(Enum):
    """How a publisher ends its stream, once its last element is signalled."""

    COMPLETES = "completes"
    FAILS = "fails"
    REFUSED = "refused by the service"
    NEVER = "never ends"


NO_BOUND: Final = 1 << 30

DEFAULTS: Final = Limits()


@attrs.frozen(kw_only=True)
class Script:
    """One stream."""

    reader: Role = Role.CLIENT
    """The side that subscribes. The publisher is on the other side."""
    at_once: int = 0
    """Demand that the subscriber requests inside on_subscribe."""
    is_open: bool = False
    """The subscriber has subscribed, and been accepted unless the service decides late, before the
    walk begins. If not, it subscribes in a separate step.
    """
    requests: tuple[int, ...] = ()
    """Later requests, each a separate step."""
    inside: tuple[int, ...] = ()
    """Requests that are made inside on_next, one for each of the first elements."""
    cancels: bool = False
    """The subscriber may cancel, at any time."""
    cancels_inside: int = 0
    """The number of the element in whose on_next the subscriber cancels; 0 if it does not."""
    elements: int = 2
    ending: Ending = Ending.COMPLETES
    size: int = 1
    """Bytes of an element."""
    sizes: tuple[int, ...] = ()
    """Bytes of the first elements, if they differ."""
    window: int = 0
    """Bytes that the subscriber may hold: it reads its elements in separate steps, and requests as
    many as its window permits. 0 if it has none.
    """
    in_runs: bool = False
    """The subscriber takes several elements in one call."""
    forged: int = 0
    """Elements that the peer sends at once, at any time and whatever the demand: it breaks the
    rules of this stream.
    """
    is_fixed: bool = False
    """The publisher declares the size."""
    decides_late: bool = False
    """The service decides in a separate step."""
    attaches_late: bool = False
    """The publisher signals on_subscribe in a separate step."""
    idle_until_demand: bool = False
    is_synchronous: bool = False
    """The publisher signals inside request(n), and not in a separate step."""
    is_call: bool = False
    """A request for one value."""

    def size_of(self, number: int) -> int:
        """Return the bytes of the element of that number."""
        return self.sizes[number] if number < len(self.sizes) else self.size


@attrs.frozen(kw_only=True)
class Scenario:
    """A conversation."""

    scripts: tuple[Script, ...]
    closes: tuple[Role, ...] = ()
    """The sides that say goodbye, each at any time."""
    is_cut: bool = False
    """The link is lost at any time, with what is under way."""
    losses: int = 0
    """How often the link is lost and resumed, each time at any time. With RS.io only:
    ReactiveSocket resumes nothing.
    """
    early_acknowledgements: int = 0
    """How many acknowledgements come at any time; others come when nothing else is under way."""
    resume_bytes: int = 1 << 20
    """Bytes that may be sent and not acknowledged before publishers are held back."""
    from_hello: bool = False
    """Begins before the handshake; if not, after it."""
    by_message: bool = False
    """A side acts on one message at a time, and calls come between the messages of one chunk."""
    limits: Limits = DEFAULTS
    depth: int = NO_BOUND
    """Steps after which the walk stops, if it would take many minutes to its end."""


RSIO: Final = "rsio"
REACTIVESOCKET: Final = "reactivesocket"

BOTH: Final = (Role.CLIENT, Role.SERVER)

# An element of 40 bytes goes in three parts, because a part may have four times 4 bytes,
# and the outbox holds one element.
IN_PARTS: Final = Limits(split_outbound_at=4, outbound_high=32, tiny_part=1)

USUAL: Final = Script(requests=(1, 2), cancels=True)
LARGE: Final = Script(at_once=1, elements=1, size=40)
RESUMED: Final = Script(is_open=True, at_once=1, elements=1)
NARROW: Final = Limits(outbound_high=16)
LATE: Final = Script(
    is_open=True,
    at_once=1,
    elements=1,
    is_fixed=True,
    decides_late=True,
    cancels=True,
    ending=Ending.NEVER,
)
FORGED: Final = Script(is_open=True, requests=(1,), cancels=True, ending=Ending.NEVER)
CALL: Final = Script(at_once=1, elements=1, is_call=True, cancels=True)

SCENARIOS: Final = {
    "request, cancel, complete": Scenario(scripts=(attrs.evolve(USUAL, elements=3),)),
    "three requests": Scenario(scripts=(Script(requests=(1, 1, 1), elements=3),)),
    "request, cancel, error": Scenario(scripts=(attrs.evolve(USUAL, ending=Ending.FAILS),)),
    "a request inside on_subscribe": Scenario(
        scripts=(Script(at_once=1, requests=(1,), elements=3, ending=Ending.NEVER, cancels=True),)
    ),
    "a late decision": Scenario(scripts=(attrs.evolve(USUAL, decides_late=True),)),
    "a late refusal": Scenario(
        scripts=(attrs.evolve(USUAL, decides_late=True, ending=Ending.REFUSED),)
    ),
    "a late on_subscribe": Scenario(scripts=(attrs.evolve(USUAL, attaches_late=True),)),
    "idle until demand": Scenario(scripts=(attrs.evolve(USUAL, idle_until_demand=True),)),
    "a synchronous publisher": Scenario(
        scripts=(attrs.evolve(USUAL, elements=3, is_synchronous=True),)
    ),
    "requests inside on_next": Scenario(
        scripts=(Script(at_once=1, inside=(1, 1), elements=4, cancels=True),)
    ),
    "a cancel inside on_next": Scenario(
        scripts=(Script(requests=(2, 1), cancels_inside=2, elements=3),)
    ),
    "elements of a fixed size": Scenario(scripts=(attrs.evolve(USUAL, size=3, is_fixed=True),)),
    "elements in parts": Scenario(
        scripts=(Script(at_once=2, size=40, cancels=True),), limits=IN_PARTS
    ),
    "elements in parts, then an error": Scenario(
        scripts=(attrs.evolve(LARGE, cancels=True, ending=Ending.FAILS),), limits=IN_PARTS
    ),
    "from the hello": Scenario(
        scripts=(Script(at_once=1, elements=1),), from_hello=True, closes=(Role.SERVER,)
    ),
    "goodbyes that cross": Scenario(
        scripts=(Script(is_open=True, requests=(1,), elements=1),), closes=BOTH
    ),
    "a link that is lost": Scenario(scripts=(Script(at_once=1, cancels=True),), is_cut=True),
    "a link that is resumed": Scenario(scripts=(RESUMED,), losses=1),
    "a link that is resumed, at the bound": Scenario(
        scripts=(attrs.evolve(RESUMED, at_once=2, elements=2, size=12),),
        losses=1,
        limits=NARROW,
        resume_bytes=10,
    ),
    "a request for one value": Scenario(scripts=(CALL,), closes=(Role.SERVER,)),
    "two streams": Scenario(
        scripts=(
            Script(is_open=True, at_once=1, elements=1, cancels=True),
            Script(is_open=True, at_once=1, elements=1, ending=Ending.FAILS),
        )
    ),
    "two cancelled streams": Scenario(
        scripts=(attrs.evolve(LATE, elements=0), attrs.evolve(LATE, elements=0, size=2))
    ),
    "a large element and a small one": Scenario(
        scripts=(Script(is_open=True, at_once=3, elements=3, sizes=(1, 40), cancels=True),),
        limits=IN_PARTS,
    ),
    "a window in bytes": Scenario(
        scripts=(Script(is_open=True, elements=3, sizes=(1,), size=6, window=8),)
    ),
    "a peer that sends too many elements": Scenario(
        scripts=(attrs.evolve(FORGED, forged=2, in_runs=True),)
    ),
    "a peer that packs too many elements": Scenario(
        scripts=(attrs.evolve(FORGED, at_once=1, forged=1, size=3, is_fixed=True),)
    ),
    "both directions": Scenario(
        scripts=(
            Script(is_open=True, at_once=1, elements=1),
            Script(is_open=True, reader=Role.SERVER, at_once=1, elements=1, cancels=True),
        )
    ),
}

DEEP: Final = {
    "two cancelled streams, with elements": Scenario(
        depth=10, scripts=(attrs.evolve(LATE, size=2), attrs.evolve(LATE, size=3))
    ),
    "two windows in bytes": Scenario(
        depth=9,
        scripts=(
            Script(is_open=True, elements=2, sizes=(1,), size=6, window=8),
            Script(is_open=True, elements=2, size=4, window=8, cancels=True),
        ),
        limits=Limits(unread_bytes=12),
    ),
    "a peer that sends too many elements of two streams": Scenario(
        scripts=(
            attrs.evolve(FORGED, forged=2, in_runs=True),
            attrs.evolve(
                FORGED, at_once=1, forged=1, size=3, is_fixed=True, requests=(), cancels=False
            ),
        )
    ),
    "resumed: three elements at the bound": Scenario(
        scripts=(attrs.evolve(RESUMED, at_once=3, elements=3, size=12),),
        losses=1,
        limits=NARROW,
        resume_bytes=20,
        early_acknowledgements=1,
    ),
    "goodbyes that cross, and a cancel": Scenario(
        scripts=(Script(at_once=1, elements=1, cancels=True),), closes=BOTH
    ),
    "from the hello, with a cancel": Scenario(
        scripts=(Script(at_once=1, elements=1, cancels=True),),
        from_hello=True,
        closes=(Role.SERVER,),
    ),
    "one message at a time": Scenario(scripts=(USUAL,), by_message=True),
    "a link that is lost beside a goodbye": Scenario(
        scripts=(Script(at_once=1, elements=1),), closes=(Role.CLIENT,), is_cut=True
    ),
    "two streams of large elements": Scenario(scripts=(LARGE, LARGE), limits=IN_PARTS),
    "three requests, five elements": Scenario(
        scripts=(attrs.evolve(USUAL, requests=(1, 1, 3), elements=5),)
    ),
    "a late decision and a late on_subscribe": Scenario(
        depth=11, scripts=(attrs.evolve(USUAL, decides_late=True, attaches_late=True),), closes=BOTH
    ),
    "from the hello, closed by both": Scenario(
        depth=11,
        scripts=(Script(at_once=1, requests=(1,), cancels=True),),
        from_hello=True,
        closes=BOTH,
        by_message=True,
    ),
    "cancel, goodbyes, a lost link": Scenario(depth=11, scripts=(USUAL,), closes=BOTH, is_cut=True),
    "elements in parts, closed": Scenario(
        depth=11,
        scripts=(attrs.evolve(USUAL, size=40),),
        limits=IN_PARTS,
        by_message=True,
        closes=(Role.SERVER,),
    ),
    "resumed: a request and a cancel": Scenario(
        scripts=(attrs.evolve(RESUMED, requests=(1,), elements=2, cancels=True),), losses=1
    ),
    "resumed: from the subscribe": Scenario(
        scripts=(Script(at_once=1, elements=1, cancels=True),), losses=1, early_acknowledgements=1
    ),
    "resumed: an element in parts": Scenario(
        scripts=(attrs.evolve(RESUMED, size=40),), losses=1, limits=IN_PARTS, by_message=True
    ),
    "resumed: twice": Scenario(scripts=(attrs.evolve(RESUMED, requests=(1,)),), losses=2),
    "resumed: closed by both": Scenario(scripts=(RESUMED,), losses=1, closes=BOTH),
    "resumed: both directions": Scenario(
        depth=12,
        scripts=(attrs.evolve(RESUMED, cancels=True), attrs.evolve(RESUMED, reader=Role.SERVER)),
        losses=1,
    ),
    "two calls": Scenario(scripts=(CALL, CALL), closes=(Role.CLIENT,)),
    "both directions, with a goodbye": Scenario(
        depth=11,
        scripts=(
            Script(at_once=1, requests=(1,), cancels=True),
            Script(reader=Role.SERVER, at_once=2),
        ),
        closes=(Role.SERVER,),
    ),
    "three streams in two directions": Scenario(
        depth=9,
        scripts=(
            Script(at_once=1, elements=1, cancels=True),
            Script(reader=Role.SERVER, at_once=1, elements=1),
            Script(at_once=1, ending=Ending.FAILS, elements=1),
        ),
        by_message=True,
    ),
}


def protocols_of(scenario: Scenario) -> tuple[str, ...]:
    """Return the protocols in which a scenario is walked."""
    return (RSIO,) if scenario.losses else (RSIO, REACTIVESOCKET)
