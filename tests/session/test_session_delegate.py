"""Who drives a session: the runtime's conversation does, and so may anybody."""

import inspect

from penstock.session import SessionDelegate
from tests.session._pair import RecordingDelegate


def test_an_owner_is_told_by_the_calls_that_are_listed_and_no_others() -> None:
    """The owner of these tests has each of them, with the same parameters."""
    calls = [name for name, value in vars(SessionDelegate).items() if inspect.isfunction(value) and not name.startswith("_")]
    assert calls
    for name in calls:
        asked = list(inspect.signature(getattr(SessionDelegate, name)).parameters)
        assert list(inspect.signature(getattr(RecordingDelegate, name)).parameters) == asked, name
