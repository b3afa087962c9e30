"""What a target must offer to be checked: publishers of known behaviour, by name, and how long to wait for it.

Rules of this file:

* A name is a publisher's in RS.io, and the data of a request in ReactiveSocket.
* An empty name says that the target has no such thing: what needs it is not supported.
"""

from typing import Final

import attrs

from penstock.api import UsageError


def _named(default: str, text: str) -> str:
    name: str = attrs.field(default=default, metadata={"help": text})
    return name


@attrs.frozen(kw_only=True)
class Target:
    """What a checked service offers. The defaults are the names of ``examples/conformance_service.py``."""

    publisher: str = _named("numbers", "sends elements of at most 100 bytes without end, as soon as they are asked for")
    """Sends elements of at most 100 bytes without end, as soon as they are asked for."""

    three: str = _named("three", "sends three elements and completes")
    """Sends three elements and completes."""

    one: str = _named("one", "has one element; the answer to a request for a response")
    """Has one element, and completes."""

    empty: str = _named("empty", "completes without an element")
    """Completes without an element."""

    failing: str = _named("failing", "fails, at once or after at most ten elements")
    """Fails, at once or after at most ten elements."""

    slow: str = _named("slow", "sends its first element a quarter of a second after it was asked for")
    """Sends its first element a quarter of a second after it was asked for."""

    large: str = _named("large", "sends at least three equal elements of 100,000 to 1,000,000 bytes")
    """Sends at least three elements of 100,000 to 1,000,000 bytes, all of them equal."""

    fixed: str = _named("fixed", "RS.io: declares a fixed size of at most 100 bytes, and sends elements without end")
    """RS.io: declares a fixed size of at most 100 bytes, and sends elements without end."""

    relay: str = _named("relay", "asks the checking side for the publisher 'tck', and passes on each element, and its end")
    """Subscribes to the publisher ``tck`` of the checking side (with ReactiveSocket: requests a stream with that data), and passes on each
    element, the end, and a failure. When it is cancelled, it cancels."""

    refused: str = _named("refuse me", "ReactiveSocket: data of a SETUP that the target refuses")
    """ReactiveSocket: data of a SETUP that the target refuses."""

    setup: str = ""
    """ReactiveSocket: data of a SETUP that the target accepts; empty is allowed."""

    missing: str = "no-such-publisher"
    """A name that leads to nothing."""

    quiet: float = 0.25
    """Seconds of silence that show that nothing more will come."""

    patience: float = 5.0
    """Seconds to wait for what is due."""

    def __attrs_post_init__(self) -> None:
        for name in ("quiet", "patience"):
            if not getattr(self, name) > 0:
                raise UsageError(f"{name}={getattr(self, name)!r}; give a number of seconds above zero")
        if self.patience <= self.quiet:
            raise UsageError(f"patience={self.patience}, quiet={self.quiet}; what is due must be given more time than silence")


OFFERS: Final[dict[str, str]] = {each.name: each.metadata["help"] for each in attrs.fields(Target) if each.metadata}
"""Each thing that a target may offer or lack, and what it does."""

RELAY_SOURCE: Final = "tck"
"""The publisher of the checking side, which the target's relay asks for."""
