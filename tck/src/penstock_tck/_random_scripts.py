"""Random scripts: many short plays on fresh objects, until one of them differs from its model.
That one is shrunk, act by act.

Rules of this file

* A script is made of a seed, which also gives the order of tasks. So it can be played again on a
  fresh object, and shortened if it fails.
* Each play has its own transcript. Only the shortest script
  that fails is played into the transcript of the check.
* Processor time limits how many scripts are played: on a busy machine as many are played as on a
  quiet one. If threads work, real time also limits them: it passes while a thread waits for its
  source.
"""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from time import monotonic, process_time
from typing import Any, Final

import attrs

from penstock.testing import Transcript, reseed
from penstock_tck._verification import Verification

MOST_SCRIPTS: Final = 300
"""Scripts in one check, unless the class says another number.
Each saboteur of the models is found among the first 102.
"""

LEAST_SCRIPTS: Final = 30
SECONDS: Final = 1.0
"""Seconds of the processor after which no script begins.
300 scripts take 0.05 s, and 4 s over TLS.
"""


@attrs.frozen(kw_only=True)
class Script:
    """The acts of one play. `setting` is what they are played on,
    such as the length of the stream.
    """

    acts: tuple[Any, ...]
    length: int
    setting: str
    seed: int

    def without(self, act: Any) -> "Script":
        """Return the script without this act."""
        return attrs.evolve(self, acts=tuple(other for other in self.acts if other is not act))

    def __str__(self) -> str:
        return f"seed {self.seed}, {self.setting}: {', then '.join(map(str, self.acts))}"


Play = Callable[[Script], Awaitable[str]]
"""Plays a script on a fresh object.
Returns how the object differs from its model, or an empty text.
"""


async def play_random_scripts(
    verification: Verification, make: Callable[[int], Script], play: Play
) -> None:
    """Play scripts until one fails, and end the check with the shortest part of it that fails,
    too. Checkpoints; raises CheckFailed.
    """
    declared, began, began_real = verification.model_seeds, process_time(), monotonic()
    for seed in range(MOST_SCRIPTS if declared is None else declared):
        if declared is None and seed >= LEAST_SCRIPTS and process_time() - began > SECONDS:
            return
        if (
            declared is None
            and verification.env.uses_threads
            and monotonic() - began_real > SECONDS
        ):
            return
        script = make(seed)
        if first := await _try(verification, play, script):
            script = await _shrink(verification, play, script)
            reseed(script.seed)
            # `first` for a fault that the order of tasks does not repeat: a thread may have caused
            # it.
            seen = await play(script) or first
            # The result has the text of each violation already.
            verification.fail(
                str(script) if verification.env.transcript.violations else f"{script}: {seen}"
            )


async def _shrink(verification: Verification, play: Play, script: Script) -> Script:
    """Return a part of the script that fails, too, and in which no act can be left out.
    Checkpoints.
    """
    is_shorter = True
    while is_shorter:
        is_shorter = False
        for act in script.acts:
            shorter = script.without(act)
            if shorter.acts and await _try(verification, play, shorter):
                script, is_shorter = shorter, True
    return script


async def _try(verification: Verification, play: Play, script: Script) -> str:
    """Play the script into a new transcript. A violation counts as a difference. Checkpoints."""
    reseed(script.seed)
    with _own_transcript(verification) as transcript:
        seen = await play(script)
    return seen or next(map(str, transcript.violations), "")


@contextmanager
def _own_transcript(verification: Verification) -> Iterator[Transcript]:
    usual, own = verification.env.transcript, Transcript()
    verification.env.transcript = own
    try:
        yield own
    finally:
        verification.env.transcript = usual
