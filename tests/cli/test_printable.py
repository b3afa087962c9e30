"""A text for a terminal has no character that would control it."""

import json
import sys
from unicodedata import category

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.cli._printable import (
    _FOR_TEXT,
    _REMEMBERED,
    cells,
    printable,
    printable_json,
    with_blanks,
)

DANGEROUS = {"Cc", "Cs", "Zl", "Zp"}
BIDIRECTIONAL = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain é 猫", "plain é 猫"),
        ("\x1b[31m", r"\x1b[31m"),
        ("\x9b31m", r"\x9b31m"),
        ("a\r\n\x08\x7f", r"a\r\n\x08\x7f"),
        ("\u202eabc", r"\u202eabc"),
        ("\ud800", r"\ud800"),
        ("\U000e0041", r"\U000e0041"),
        ("a\u00a0b\u3000c", "a\u00a0b\u3000c"),
        ("क\u200cष", "क\u200cष"),
    ],
)
def test_a_character_that_is_not_printable_is_escaped(text: str, shown: str) -> None:
    """Blanks of other scripts and the joiners stay, because texts of many languages need them."""
    assert printable(text) == shown


def test_no_control_of_unicode_is_left() -> None:
    """Over every character: controls, surrogates, line separators,
    and every bidirectional control.
    """
    for code in range(sys.maxunicode + 1):
        if category(chr(code)) in DANGEROUS or chr(code) in BIDIRECTIONAL:
            assert printable(chr(code)).isascii(), hex(code)
            assert printable_json(f'"{chr(code)}"').isascii(), hex(code)


def test_a_text_with_every_character_of_unicode_fills_no_table() -> None:
    """A server could send one."""
    printable("".join(map(chr, range(sys.maxunicode + 1))))
    assert len(_FOR_TEXT) <= _REMEMBERED


@given(st.text(st.characters()))
def test_escaped_json_has_the_same_value(text: str) -> None:
    """JSON with escapes is read as the same text, also with lone surrogates."""
    assert json.loads(printable_json(json.dumps(text, ensure_ascii=False))) == text


@pytest.mark.parametrize(
    ("text", "column", "shown"),
    [
        ("a\tb", 0, "a       b"),
        ("猫\tb", 0, "猫      b"),
        ("\tb", 3, "     b"),
        ("\t\x1b\t", 0, " " * 8 + r"\x1b" + " " * 4),
    ],
)
def test_a_tab_becomes_blanks_up_to_its_stop(text: str, column: int, shown: str) -> None:
    """As a terminal would show it: a wide character takes two columns."""
    assert with_blanks(text, column) == shown


@pytest.mark.parametrize(
    ("text", "width"), [("abc", 3), ("猫", 2), ("e\u0301", 1), ("\uff21", 2), ("é", 1)]
)
def test_the_columns_of_a_text_are_counted(text: str, width: int) -> None:
    """A wide character has two, a combining one none."""
    assert cells(text) == width
