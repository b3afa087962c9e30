"""What came of a check, for people and for programs."""

from penstock_tck.wire import Result, Verdict, as_json, as_text, requirements, summary

ROWS = requirements("reactivesocket")
RESULTS = [
    Result(name=ROWS[0].name, verdict=Verdict.FAIL, seen="ERROR '\x1b[2J'"),
    Result(name=ROWS[1].name, verdict=Verdict.PASS, seen="as it should"),
]


def test_a_row_shows_verdict_name_sentence_line_and_what_was_seen() -> None:
    """What a target said cannot command the terminal."""
    text = as_text(ROWS[0], RESULTS[0])
    assert text.startswith(f"FAIL           {ROWS[0].name}")
    assert f"line {ROWS[0].line}, MUST" in text
    assert "“Immediately upon successful connection" in text
    assert "→ ERROR '\\x1b[2J'" in text


def test_the_summary_counts() -> None:
    """Each verdict, those that nothing has too."""
    assert summary(RESULTS) == "1 pass, 1 fail, 0 not supported"


def test_json_holds_everything() -> None:
    """Address, counts, and each row with its sentence."""
    made = as_json("tcp://a:1", ROWS, RESULTS)
    assert made["url"] == "tcp://a:1"
    assert made["counts"] == {"pass": 1, "fail": 1, "not supported": 0}
    assert [(row["name"], row["verdict"], row["line"]) for row in made["requirements"]] == [
        (ROWS[0].name, "fail", ROWS[0].line),
        (ROWS[1].name, "pass", ROWS[1].line),
    ]
    assert "\x1b" not in made["requirements"][0]["seen"]
