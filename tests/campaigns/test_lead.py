"""The campaign that measures leads: it judges, shows what it has seen, and skips by name."""

from pathlib import Path

import attrs
import pytest

from campaigns.lead import __main__ as campaign
from campaigns.lead import _page
from campaigns.lead._contenders import PLUGINS, Contender, contenders
from campaigns.lead._run import MOST, RunFailed, Runner, Seen
from tests._heavy import all_but
from tests.repo._tree import refuse, text_of

DOCS = Path("docs/explanation")
BY_TITLE = {each.title: each for each in contenders()}
STILL = Seen(ahead=1, state="still", producer=0.0, reader=0.0, between=0.0, lost=1, after="closed")


def row_of(*ahead: int, demand: int | None = 1, state: str = "still") -> _page.Row:
    """Return a row with these leads."""
    seen = {
        size: attrs.evolve(STILL, ahead=each, state=state)
        for size, each in zip(MOST, ahead, strict=True)
    }
    return _page.Row(name="penstock, x", setting="demand=1", about="", demand=demand, seen=seen)


def test_each_contender_has_a_name_of_its_own() -> None:
    """At least 12 libraries of others, most of them with two settings."""
    assert len(BY_TITLE) == len(contenders())
    peers = [each for each in contenders() if each.demand is None]
    assert len({each.name for each in peers}) >= 12
    ways = [each for each in contenders() if each.demand is not None]
    assert {each.demand for each in ways} == {256, 1}


def test_penstock_is_judged_and_others_are_not(capsys: pytest.CaptureFixture[str]) -> None:
    """One element above the demand and 8 is a miss."""
    good, bad, other = row_of(1, 9, 1), row_of(1, 1, 10), row_of(90, 90, 90, demand=None)
    assert good.misses == []
    assert bad.misses == ["penstock, x, demand=1: 10 elements of 64 KiB ahead, at most 9 are due"]
    assert other.misses == []
    assert campaign.finish([good, other], good.misses) == 0
    assert campaign.finish([bad], bad.misses) == 1
    assert campaign.finish([attrs.evolve(good, seen={}, failed="it broke")], []) == 1
    assert campaign.finish([], []) == 1
    last = capsys.readouterr().out.splitlines()[1]
    assert last.endswith("which is at most 10 elements ahead; 1 misses, 0 failed, 0 skipped")


def test_what_held_a_producer_up_is_told_from_two_sizes() -> None:
    """A producer that made all of the large elements was held up by nothing."""
    assert row_of(9, 9, 9).bound == "elements"
    assert row_of(60_000, 5_000, 90).bound == "bytes"
    assert row_of(9, 9, 9, state="all").bound == "nothing"


def test_a_contender_whose_library_is_missing_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And not run."""
    absent = Contender(
        name="a", setting="defaults", read="", modules=("no_such",), programs=("no-such",)
    )
    row = campaign.measure(absent, (64,), Runner(tmp_path))
    assert (row.skipped, row.seen) == ("no_such, no-such", {})
    assert capsys.readouterr().out == "skip a, defaults: no_such, no-such is missing\n"


RUNS = [
    ("asyncio.Queue, two tasks, defaults", 3_990, "all", "has made all"),
    ("asyncio.Queue, two tasks, maxsize=1", 2, "still", "waits"),
    ("penstock, through five operators, in one program, demand=1", 0, "still", "closed"),
    ("penstock, tcp://, a reader on blocking, demand=1", 0, "still", "closed"),
]


@pytest.mark.parametrize(
    ("title", "ahead", "state", "after"),
    all_but(RUNS, RUNS[-1:]),
)
def test_a_run_sees_the_lead(
    tmp_path: Path, title: str, ahead: int, state: str, after: str
) -> None:
    """With two programs, or with one that is both sides."""
    seen = Runner(tmp_path).run(BY_TITLE[title], 65_536)
    assert (seen.ahead, seen.state, seen.after) == (ahead, state, after)


def test_a_side_that_fails_is_reported_with_its_error(tmp_path: Path) -> None:
    """The campaign goes on with the next contender, and ends with status 1."""
    broken = Contender(name="a", setting="defaults", read="_network.no_such_function")
    with pytest.raises(RunFailed, match=r"reader has ended: .*no_such_function"):
        Runner(tmp_path).run(broken, 64)
    row = campaign.measure(broken, (64,), Runner(tmp_path))
    assert "no_such_function" in row.failed
    assert not [*tmp_path.iterdir()]


def test_the_short_form_starts_no_large_program() -> None:
    """And `--only` picks by a part of the name."""
    short = campaign.chosen(short=True, only="")
    assert not [each.title for each in short if each.is_slow]
    assert {each.broker for each in short} == {"", "nats", "jetstream", "redis"}
    only = campaign.chosen(short=False, only="websockets, nginx")
    assert {each.name.partition(",")[0] for each in only} == {"websockets", "penstock"}


def test_each_plugin_that_a_way_needs_is_named() -> None:
    """Without it the way is skipped, and does not fail."""
    for each in contenders():
        if each.serve.startswith("_penstock"):
            used = {PLUGINS[word] for word in each.options.values() if word in PLUGINS}
            assert used <= set(each.modules), each.title


def test_the_page_is_made_from_the_stored_figures() -> None:
    """`python -m campaigns lead --docs docs/explanation` makes it again."""
    figures = _page.Figures.from_json(text_of(DOCS / _page.FIGURES))
    made = _page.pages(figures)
    refuse(
        (DOCS / name for name, text in made.items() if text_of(DOCS / name) != text),
        "generate these files again:",
    )
    assert _page.Figures.from_json(figures.to_json()) == figures
    assert figures.rows.keys() == BY_TITLE.keys()
    assert [miss for row in figures.rows.values() for miss in row.misses] == []
