"""Where a stream begins over each of its connections, and where it stops.

Rules of this file:

* The positions of elements are implied: the publisher tells that of the first one, and this side
  counts.
* The name that the program has typed is sent unchanged over the first connection: its words may be
  those of a function, and not those of a log.
* The word ``latest`` as the place to stop is decided once: on a later connection it would mean a
  later position.
"""

from penstock.api import PositionedName, Positions, ProtocolError


class StreamPlace:
    """The name of a publisher, with the places that are asked for."""

    __slots__ = ("_called", "_name", "_stop", "_typed")

    def __init__(self, name: str, called: str | None = None) -> None:
        """`called` is how an error names the publisher, if its name does not say enough."""
        self._typed = name
        # A later connection needs other places than the name was typed with.
        self._name = name if isinstance(name, PositionedName) else PositionedName.parse(name)
        self._stop = self._name.stop
        self._called = called or repr(self._name.bare)

    def first(self) -> int | None:
        """Return the position of the first element, if it is known without an answer: over a
        connection without the extension *position* none comes.
        """
        typed = self._typed
        if isinstance(typed, PositionedName) and isinstance(typed.start, int):
            return typed.start
        return None

    def name_at(self, position: int | None) -> str:
        """Return the name to subscribe to, for a stream whose next element has `position`. None:
        it is not known, and the stream begins where the program has said.
        """
        return self._typed if position is None else self._name.at(position, self._stop)

    def learn(self, told: Positions, asked: int | None) -> ProtocolError | None:
        """Learn where a publisher begins. Return the error if it is not where this side has
        `asked`: elements would be missing, or come twice.
        """
        if asked is not None and told.first != asked:
            text = (
                f"{self._called} begins at position {told.first:,}, and {asked:,} was asked for. "
                "The peer must act"
            )
            return ProtocolError(text, reason="protocol:position")
        if self._stop == "latest" and told.latest is not None:
            self._stop = told.latest
        return None
