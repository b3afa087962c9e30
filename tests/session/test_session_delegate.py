"""The delegate of a session: in the runtime it is the connection task,
here it is the recording delegate.
"""

import inspect

from penstock.session import SessionDelegate
from tests.session._pair import RecordingDelegate


def test_the_recording_delegate_has_every_call() -> None:
    """Each call of SessionDelegate, with the same parameters."""
    calls = [
        name
        for name, value in vars(SessionDelegate).items()
        if inspect.isfunction(value) and not name.startswith("_")
    ]
    assert calls
    for name in calls:
        expected = list(inspect.signature(getattr(SessionDelegate, name)).parameters)
        assert list(inspect.signature(getattr(RecordingDelegate, name)).parameters) == expected, (
            name
        )
