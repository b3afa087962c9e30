"""`RELEASED`, the owner of the streams of a session that is over, takes every call; a dialect
with `release` is released.
"""

from typing import Any

from penstock.session._channel import StreamOwner
from penstock.session._ended import RELEASED, release_dialect
from penstock.session._session_delegate import SessionDelegate


def test_it_takes_every_call_of_a_delegate_and_of_an_owner() -> None:
    """A late call does nothing."""
    owner: Any = RELEASED
    for protocol in (SessionDelegate, StreamOwner):
        for name, function in vars(protocol).items():
            if not name.startswith("_"):
                assert getattr(owner, name)(*[None] * (function.__code__.co_argcount - 1)) is None


def test_a_dialect_of_a_plugin_may_lack_the_method() -> None:
    """Then the collector frees it."""

    class Plain:
        released = 0

    class Releasing(Plain):
        def release(self) -> None:
            Plain.released += 1

    for kind in (Plain, Releasing):
        dialect: Any = kind()
        release_dialect(dialect)
    assert Plain.released == 1
