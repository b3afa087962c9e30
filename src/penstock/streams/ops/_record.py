"""`record` shows the signals of a stream to a recorder."""

from typing import Any

from penstock.api import MakesTaps, Subscriber, UsageError
from penstock.core import Scope, SignalCounter, TappedRelay
from penstock.streams._source import Source
from penstock.streams.ops._operator import OperatorBase, SameTypeOperator


def record(recorder: MakesTaps, name: str) -> SameTypeOperator:
    """Record the signals between this place and the next one, under `name`: see
    `penstock.recording.Recorder`.

    Each subscription is a separate stream in the record. Upstream demand: 1 per downstream demand.
    Buffer: none.
    Completion, errors and cancellation pass straight through, and elements
    that travel together stay together.
    """
    if not callable(getattr(recorder, "tap", None)):
        raise UsageError(
            "record() needs a penstock.recording.Recorder and a name, and the recorder is "
            f"{recorder!r}"
        )
    if not name:
        raise UsageError("record() needs a name for the stream, and it is empty")
    return _Record(recorder, name)


class _Record(OperatorBase[Any, Any]):
    """The operator."""

    __slots__ = ("_name", "_recorder")

    def __init__(self, recorder: MakesTaps, name: str) -> None:
        self._recorder = recorder
        self._name = name

    def attach(self, source: Source[Any], subscriber: Subscriber[Any], scope: Scope) -> None:
        tap = self._recorder.tap(self._name)
        if tap is None:
            source.attach(subscriber, scope)
            return
        source.attach(TappedRelay(subscriber, SignalCounter(tap)), scope)

    def __repr__(self) -> str:
        return f"<operator record({self._name!r})>"
