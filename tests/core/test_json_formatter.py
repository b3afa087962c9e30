"""Lines of penstock's logs as JSON."""

import json
import logging
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.api import quoted_text
from penstock.core import JsonFormatter


def _line(text: str, **more: Any) -> dict[str, Any]:
    record = logging.LogRecord("penstock.access", logging.INFO, __file__, 1, text, (), None)
    record.created = 1_782_000_000.1239
    vars(record).update(more)
    written = JsonFormatter().format(record)
    assert written.isascii()
    assert "\n" not in written
    line: dict[str, Any] = json.loads(written)
    assert line.pop("time") == "2026-06-21T00:00:00.123Z"
    assert (line.pop("level"), line.pop("logger")) == ("INFO", "penstock.access")
    return line


def test_a_line_of_the_access_log_has_its_fields() -> None:
    """Numbers are numbers."""
    assert _line(
        'connection peer="10.0.0.7:5000" at="tcp://x:1" protocol=rsio reason="lost: a \\"b\\"" '
        "streams=3 elements=10 received=-1 seconds=0.250 (1,204 lines like this one were left out "
        "before it)"
    ) == {
        "event": "connection",
        "peer": "10.0.0.7:5000",
        "at": "tcp://x:1",
        "protocol": "rsio",
        "reason": 'lost: a "b"',
        "streams": 3,
        "elements": 10,
        "received": -1,
        "seconds": 0.25,
        "left_out": 1204,
    }


@given(st.text(max_size=150))
def test_the_words_of_a_peer_come_back(words: str) -> None:
    """Any words stay in their field, unless they were cut."""
    shown = quoted_text(words)
    found = _line(f'stream peer="p" name={shown} outcome=refused')
    assert (found["event"], found["peer"], found["outcome"]) == ("stream", "p", "refused")
    if len(shown) < 200:
        assert found["name"] == words


@pytest.mark.parametrize(
    "text",
    [
        "serving at tcp://127.0.0.1:7000",
        "10.0.0.7: 4,213 lines were left out",
        'stream peer="cut in the mid...',
        "stream",
        "",
        'Stream peer="x"',
    ],
)
def test_each_other_line_is_a_message(text: str) -> None:
    """Its text is unchanged."""
    assert _line(text) == {"message": text}


def test_a_traceback_is_a_field() -> None:
    """The bounded text if there is one, or that of Python."""
    assert _line("failed", exc_text="the end of it\n  x") == {
        "message": "failed",
        "traceback": "the end of it\n  x",
    }
    try:
        int("wrong")
    except ValueError:
        found = _line("failed", exc_info=sys.exc_info())
    assert "ValueError: invalid literal" in found["traceback"]
