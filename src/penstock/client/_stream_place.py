"""Where a stream begins and stops, and where it goes on over the next connection.

Rules of this file:

* The positions of elements are implied:
  the publisher tells that of the first one, and `StreamBuffer` counts.
* A stream goes on only if its position is known:
  without one elements would be missing, or come twice.
* The word ``latest`` as the place to stop is decided once:
  on a later connection it would mean a later position.
"""

from penstock.api import ConnectionLost, PositionedName, Positions, ProtocolError


class StreamPlace:
    """The places of one subscription. `received` is how many elements have arrived."""

    __slots__ = ("_first", "_first_name", "_goes_on", "_name", "_stop", "is_cut")

    def __init__(self, name: str = "", *, goes_on: bool = False) -> None:
        """With `goes_on` the stream goes on after a lost connection."""
        self._first_name = name
        # As it was typed, and with the places taken out of it:
        # a later connection needs other places.
        self._name = name if isinstance(name, PositionedName) else PositionedName.parse(name)
        self._stop = self._name.stop
        self._goes_on = goes_on
        # Known without an answer: over a connection without the extension *position* none comes.
        given = name.start if isinstance(name, PositionedName) else None
        self._first: int | None = given if isinstance(given, int) else None
        self.is_cut: bool = False
        """The connection is lost, and the stream waits for the next one."""

    def position(self, received: int) -> int | None:
        """Return the position of the element behind those, or None
        if the publisher has told no positions.
        """
        return None if self._first is None else self._first + received

    def next_name(self, received: int) -> str:
        """Return the name to subscribe to over the next connection."""
        position = self.position(received)
        return (
            self._name.at(position, self._stop)
            if self.is_cut and position is not None
            else self._first_name
        )

    def cut(self, error: BaseException) -> bool:
        """Return whether the stream goes on after `error`, and note it."""
        self.is_cut = (
            self._goes_on and self._first is not None and isinstance(error, ConnectionLost)
        )
        return self.is_cut

    def learn(self, positions: Positions, received: int) -> ProtocolError | None:
        """Note what the publisher has told.
        Return an error if it begins in another place than this side has asked for.
        """
        asked = self.position(received)
        if asked is not None and positions.first != asked:
            text = (
                f"{self._name.bare!r} begins at position {positions.first:,}, and {asked:,} was "
                "asked for. The peer must act"
            )
            return ProtocolError(text, reason="protocol:position")
        self._first = positions.first - received
        if self._stop == "latest" and positions.latest is not None:
            self._stop = positions.latest
        return None
