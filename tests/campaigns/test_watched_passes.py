"""The stacks of the longest pass."""

from threading import Event
from time import thread_time

from campaigns.soak import _watched_passes
from campaigns.soak._watched_passes import WatchedPasses


def _work_until(seen: Event) -> None:
    began = thread_time()
    while not seen.is_set() or thread_time() - began < 0.001:
        pass


def test_the_stack_of_the_longest_pass_is_kept() -> None:
    """The thread has looked at that pass. A shorter one after it does not replace it."""
    passes = WatchedPasses()
    looked = Event()
    passes._seen = _Noticing(looked)
    passes.after_io_wait(0)
    _work_until(looked)
    passes.before_io_wait(0)
    passes.after_io_wait(0)
    passes.before_io_wait(0)
    assert "_work_until (test_watched_passes.py" in passes.stacks[0]


def test_a_short_pass_has_no_stack() -> None:
    """The thread looks at passes of `LONG` and more."""
    passes = WatchedPasses()
    assert _watched_passes.LONG > _watched_passes.BETWEEN
    for _ in range(100):
        passes.after_io_wait(0)
        passes.before_io_wait(0)
    assert passes.stacks == []


class _Noticing(list[str]):
    """Tells when the thread has kept a stack."""

    def __init__(self, kept: Event) -> None:
        super().__init__()
        self._kept = kept

    def append(self, stack: str) -> None:
        super().append(stack)
        self._kept.set()
