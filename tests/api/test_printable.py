"""Texts of a peer that are safe to print."""

import pytest

from penstock.api import printable, quoted_text

HOSTILE = "".join(
    map(
        chr,
        [
            *range(0x20),
            *range(0x7F, 0xA0),
            0x200E,
            0x202E,
            0x2028,
            0x2029,
            0x2066,
            0xFEFF,
            0xD800,
            0xDFFF,
            0xA0,
        ],
    )
)


def test_everything_that_a_terminal_obeys_is_escaped() -> None:
    """C0, C1, bidirectional controls, line separators, lone surrogates, strange blanks."""
    for letter in HOSTILE:
        escaped = printable(f"a{letter}b")
        assert escaped == f"a{ascii(letter)[1:-1]}b"
        assert escaped.isprintable()
        assert escaped.isascii()


def test_letters_of_all_scripts_stay() -> None:
    """A printable text is not copied."""
    text = "höhe/水/Ωμέγα ab'\"\\"
    assert printable(text) is text


@pytest.mark.parametrize("text", ["x" * 500, "\x1b" * 500, "\U0010ffff" * 500])
def test_a_long_text_is_cut(text: str) -> None:
    """The bound counts characters after escaping."""
    assert len(printable(text, 50)) == 50
    assert printable(text, 50).endswith("...")
    assert len(quoted_text(text, 50)) == 52


def test_a_quoted_text_ends_at_its_last_quote() -> None:
    """So no text can pretend to be the next field of a line."""
    assert quoted_text('x" reason="fine\\') == '"x\\" reason=\\"fine\\\\"'
    assert quoted_text("a\nb") == '"a\\nb"'
