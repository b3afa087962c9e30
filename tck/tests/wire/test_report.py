"""The results as text for a terminal, and as values for a JSON file."""

from penstock_tck.wire import Result, Verdict, as_json, as_text, requirements, summary

ROWS = requirements("reactivesocket")
RESULTS = [
    Result(name=ROWS[0].name, verdict=Verdict.FAIL, seen="ERROR '\x1b[2J'"),
    Result(name=ROWS[1].name, verdict=Verdict.PASS, seen="2 requested, 2 received"),
]


def test_text_shows_verdict_name_sentence_line_and_observation() -> None:
    """Escape characters of a text from the target are escaped: they cannot control the terminal."""
    text = as_text(ROWS[0], RESULTS[0])
    assert text.startswith(f"FAIL           {ROWS[0].name}")
    assert f"ReactiveSocket draft, line {ROWS[0].line}, MUST" in text
    assert ROWS[0].sentence in text
    assert "→ ERROR '\\x1b[2J'" in text


def test_the_summary_counts_each_verdict() -> None:
    """Verdicts without a result are counted as 0."""
    assert summary(RESULTS) == "1 pass, 1 fail, 0 not supported"


def test_json_holds_the_url_the_counts_and_the_rows() -> None:
    """Each row has its name, verdict and line; texts from the target are escaped."""
    made = as_json("tcp://a:1", ROWS, RESULTS)
    assert made["url"] == "tcp://a:1"
    assert made["counts"] == {"pass": 1, "fail": 1, "not supported": 0}
    assert [(row["name"], row["verdict"], row["line"]) for row in made["requirements"]] == [
        (ROWS[0].name, "fail", ROWS[0].line),
        (ROWS[1].name, "pass", ROWS[1].line),
    ]
    assert "\x1b" not in made["requirements"][0]["seen"]
