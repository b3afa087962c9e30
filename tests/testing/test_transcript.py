"""`Transcript`: readable, bounded, and without references to objects."""

import gc
import weakref

import trio

from penstock.testing import Transcript, run_virtual, shown


def test_a_line_has_step_time_actor_and_text() -> None:
    """The columns are the order, the virtual time, the actor and the text."""

    async def scenario() -> str:  # under a MockClock
        transcript = Transcript()
        transcript.add("s1", "-> request(1)")
        await trio.sleep(2.5)
        transcript.add("s1", "<- on_next('a')")
        return transcript.text()

    assert (
        run_virtual(scenario)
        == "    1     0.000s  s1   -> request(1)\n    2     2.500s  s1   <- on_next('a')"
    )


def test_the_middle_of_a_long_transcript_is_dropped_and_counted() -> None:
    """Memory is bounded. The first and the last 200 lines explain most failures."""
    transcript = Transcript()
    for number in range(1000):
        transcript.add("s1", f"line {number}")
    text = transcript.text()
    assert "line 0\n" in text
    assert text.endswith("line 999")
    assert "... 600 lines left out ..." in text
    assert len(transcript.records()) == 400


def test_violations_stay_and_are_grouped_by_actor() -> None:
    """A violation cannot be undone, and each actor finds its own."""
    transcript = Transcript()
    transcript.violate("1.1", "too many", actor="s1")
    transcript.violate("2.4", "too late", actor="p1")
    assert [str(violation) for violation in transcript.violations_of("p1")] == [
        "rule 2.4, step 2, p1: too late"
    ]
    assert "!! rule 1.1: too many" in transcript.text()


def test_violations_are_bounded() -> None:
    """A runaway publisher cannot fill the memory."""
    transcript = Transcript()
    for _ in range(1000):
        transcript.violate("1.1", "too many", actor="s1")
    assert len(transcript.violations) == 200


def test_an_empty_transcript_says_so() -> None:
    """Its text is not empty."""
    assert Transcript().text() == "(nothing was signalled)"


def test_a_value_is_shown_short_even_if_its_repr_fails() -> None:
    """A repr that raises, or one of a thousand characters, does no harm."""

    class Broken:
        def __repr__(self) -> str:
            raise ValueError

        __len__ = __repr__

    assert shown(Broken()).startswith("<Broken instance")
    # `reprlib` of Python 3.14 takes it for an instance, and that of 3.11 for a list.
    assert shown(type("list", (Broken,), {})()).startswith("<list ")
    assert len(shown("x" * 1000)) < 70
    assert shown(1) == "1"


def test_a_transcript_keeps_no_object_alive() -> None:
    """It holds text. Otherwise the check for dropped references would find the transcript
    itself.
    """

    class Thing:
        pass

    thing = Thing()
    reference, transcript = weakref.ref(thing), Transcript()
    transcript.add("s1", f"<- on_next({shown(thing)})")
    del thing
    gc.collect()
    assert reference() is None
    assert transcript.steps == 1
