"""What the screen of `penstock top` makes of the bytes that a terminal sends for keys. What it draws
is in test_top.py, on a real terminal.
"""

import pytest

pytest.importorskip("rich", reason="the screen of top needs it")
keys_in = pytest.importorskip("penstock.cli._top_screen", reason="needs a terminal of Unix").keys_in


@pytest.mark.parametrize(
    "code",
    [
        *("\x1b[2~", "\x1b[3~", "\x1b[15~", "\x1b[Z", "\x1b[D", "\x1b[1;5A", "\x1b[1;2P"),
        *("\x1bOP", "\x1bOD", "\x1b[[A", "\x1b\x1b[A", "\x1b\x1bOA", "\x1b[?1;2$y"),
        *("\x1bq", "\x1bs", "\x1b/", "\x1b\r", "\x1b[<0;1;1M"),
    ],
)
def test_an_unknown_key_is_passed_over_whole(code: str) -> None:
    """Nothing of it is another key, also if the terminal sends it in two parts."""
    assert keys_in(f"j{code}k", is_all=False) == (["j", "k"], "")
    for at in range(1, len(code)):
        keys, rest = keys_in(code[:at], is_all=False)
        assert (keys, rest) == ([], code[:at])
        assert keys_in(f"{rest}{code[at:]}k", is_all=False) == (["k"], "")


def test_known_keys_are_told_from_an_escape() -> None:
    """An escape that nothing follows is the key."""
    codes = "\x1b[A\x1bOB\x1b[5~\x1b[6~\x1b[H\x1b[4~\rq\x7f"
    names = ["up", "down", "page up", "page down", "home", "end", "enter", "q", "backspace"]
    assert keys_in(codes, is_all=False) == (names, "")
    assert keys_in("q\x1b", is_all=False) == (["q"], "\x1b")
    assert keys_in("\x1b", is_all=True) == (["escape"], "")
    assert keys_in("\x1b\x1b", is_all=True) == (["escape", "escape"], "")
    # Alt-O, and not the beginning of an arrow.
    assert keys_in("\x1bO", is_all=True) == ([], "")
