"""A plugin that keeps every event it gets, as an outsider would write one,
and a registry with it.
"""

from penstock.spi import (
    ConnectionClosed,
    ConnectionOpened,
    ConnectionRefused,
    Event,
    Registry,
    StreamEnded,
    StreamOpened,
    build_registry,
    hookimpl,
)


class Observer:
    """Every event, in order."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    @hookimpl
    def penstock_connection_opened(self, event: ConnectionOpened) -> None:
        self.events.append(event)

    @hookimpl
    def penstock_connection_closed(self, event: ConnectionClosed) -> None:
        self.events.append(event)

    @hookimpl
    def penstock_connection_refused(self, event: ConnectionRefused) -> None:
        self.events.append(event)

    @hookimpl
    def penstock_stream_opened(self, event: StreamOpened) -> None:
        self.events.append(event)

    @hookimpl
    def penstock_stream_ended(self, event: StreamEnded) -> None:
        self.events.append(event)

    def registry(self) -> Registry:
        """Return the installed plugins and this one."""
        return build_registry([self])

    @property
    def opened(self) -> list[ConnectionOpened]:
        return [each for each in self.events if isinstance(each, ConnectionOpened)]

    @property
    def closed(self) -> list[ConnectionClosed]:
        return [each for each in self.events if isinstance(each, ConnectionClosed)]

    @property
    def refused(self) -> list[ConnectionRefused]:
        return [each for each in self.events if isinstance(each, ConnectionRefused)]

    @property
    def begun(self) -> list[StreamOpened]:
        return [each for each in self.events if isinstance(each, StreamOpened)]

    @property
    def ended(self) -> list[StreamEnded]:
        return [each for each in self.events if isinstance(each, StreamEnded)]

    def story(self) -> list[str]:
        """Return the kinds of the events, in order."""
        return [type(each).__name__ for each in self.events]
