"""The target of the checks: the publishers that it offers, by name,
and how long the checks wait for it.

Rules of this file:

* In RS.io a name is the name of a publisher. In ReactiveSocket it is the data of a request, in
  RSocket its route.
* An empty name means that the target does not offer this.
  The requirements that need it are then not supported.
"""

from typing import Final

import attrs

from penstock.api import UsageError


def _named(default: str, text: str) -> str:
    name: str = attrs.field(default=default, metadata={"help": text})
    return name


@attrs.frozen(kw_only=True)
class Target:
    """The offers of the server under test. The defaults are the names in
    ``examples/conformance_service.py``.
    """

    publisher: str = _named(
        "numbers", "sends elements of at most 100 bytes without end, as soon as they are requested"
    )
    """Sends elements of at most 100 bytes without end, as soon as they are requested."""

    three: str = _named("three", "sends three elements and completes")
    """Sends three elements and completes."""

    one: str = _named(
        "one", "sends one element and completes; also the answer to a request for a response"
    )
    """Sends one element and completes. Also the answer to a request for a response."""

    empty: str = _named("empty", "completes without an element, also if nothing is requested")
    """Completes without an element, also if nothing is requested."""

    failing: str = _named("failing", "fails, at once or after at most ten elements")
    """Fails, at once or after at most ten elements."""

    blank: str = _named("blank", "HTTP: sends one element, which is empty, and completes")
    """HTTP: sends one element, which is empty, and completes."""

    private: str = _named(
        "private",
        (
            "HTTP: fails with an exception that its author did not make public, and whose text "
            "has 'tck-private'"
        ),
    )
    """HTTP: fails with an exception that its author did not make public, and whose text has
    `PRIVATE_TEXT`.
    """

    slow: str = _named(
        "slow", "sends its first element a quarter of a second after it is requested"
    )
    """Sends its first element a quarter of a second after it is requested."""

    large: str = _named(
        "large",
        (
            "sends at least three elements of 200,000 bytes: element k, from 0, is the numbers of "
            "4 bytes from k·2^24 on"
        ),
    )
    """Sends at least three elements of 200,000 bytes. Element k, counted from 0, consists of the
    50,000 numbers from k·2^24 on, each of four bytes, the highest byte first. In Python
    `large_element` makes it.
    """

    fixed: str = _named(
        "fixed", "RS.io: declares a fixed size of at most 100 bytes, and sends elements without end"
    )
    """RS.io: declares a fixed size of at most 100 bytes, and sends elements without end."""

    relay: str = _named(
        "relay",
        (
            "subscribes to the publisher 'tck' of the checking side, and passes on each element "
            "and the end"
        ),
    )
    """Subscribes to the publisher ``tck`` of the checking side (ReactiveSocket: requests a stream
    with that data). It passes on each element, the completion and an error. If it is cancelled, it
    cancels its own subscription.
    """

    echo: str = _named("echo", "is a request by name that answers with its payload")
    """Is a request by name, with a payload. The answer is the payload."""

    channel: str = _named(
        "channel", "RSocket: is a channel that answers each element with the same element"
    )
    """RSocket: is a channel that answers each element with the same element, and completes when
    the requester does.
    """

    pair: str = _named(
        "pair", "RSocket: is a channel that requests two elements in all, and answers with them"
    )
    """RSocket: is a channel that requests two elements in all, at once, and answers with them."""

    greedy: str = _named(
        "greedy",
        "RSocket: is a channel that requests 2^30 elements at first, and 2^30 after each element",
    )
    """RSocket: is a channel that requests 2^30 elements at first, and 2^30 more after each
    element. It answers nothing.
    """

    refused: str = _named(
        "refuse me", "ReactiveSocket, RSocket: data of a SETUP that the target refuses"
    )
    """ReactiveSocket and RSocket: data of a SETUP that the target refuses."""

    setup: str = ""
    """ReactiveSocket and RSocket: data of a SETUP that the target accepts; may be empty."""

    missing: str = "no-such-publisher"
    """A name for which the target has no publisher."""

    quiet: float = 0.25
    """If nothing comes for this many seconds, a check assumes that nothing more will come."""

    patience: float = 5.0
    """Seconds to wait for an expected message."""

    def __attrs_post_init__(self) -> None:
        for name in ("quiet", "patience"):
            if not getattr(self, name) > 0:
                raise UsageError(
                    f"{name}={getattr(self, name)!r}; give a number of seconds greater than zero"
                )
        if self.patience <= self.quiet:
            raise UsageError(
                f"patience={self.patience}, quiet={self.quiet}; patience must be greater than quiet"
            )


OFFERS: Final[dict[str, str]] = {
    each.name: each.metadata["help"] for each in attrs.fields(Target) if each.metadata
}
"""The offers that a target may have or lack, each with a description."""

SLOW_ATTEMPTS: Final = 5
"""How often a check asks the slow publisher, if its element comes before the target can have
read the cancel: the machine is busy then.
"""

PRIVATE_TEXT: Final = "tck-private"
"""The text of the exception with which the publisher `Target.private` fails."""

RELAY_SOURCE: Final = "tck"
"""The publisher of the checking side to which the target's relay subscribes."""
