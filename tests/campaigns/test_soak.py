"""The soak counts, judges and exits as it should; a short one runs here. The ten minutes
themselves are `nox -s soak`.
"""

from collections import Counter
from pathlib import Path

import pytest

from campaigns.soak import __main__ as soaking
from campaigns.soak._elements import COUNT, elements
from campaigns.soak._report import MIB, Report, Sample

RECORDED = Path(__file__).parents[2] / "docs/explanation" / soaking.PAGE

ATTACK = "a message of an extension before the hello"
"""Is over at once."""


def _sample(
    second: int, in_use: int, *, blocks: int = 1000, files: int = 12, tasks: int = 12
) -> Sample:
    return Sample(second, in_use, in_use + MIB, blocks, files, tasks, 0, 0.01, 0.005)


def _report(
    *samples: Sample,
    errors: tuple[str, ...] = (),
    reported: tuple[str, ...] = (),
    peak: int = 200 * MIB,
) -> Report:
    attacks = Counter({"RS.io: a": 2, "RS.io: b": 3, "Connections: c": 1})
    return Report(5000, 70, 8, errors, reported, attacks, {"places:address": 4}, samples, peak, ())


FLAT = (
    _sample(0, 50 * MIB),
    _sample(60, 60 * MIB, tasks=99),
    _sample(120, 70 * MIB, tasks=99),
    _sample(600, 75 * MIB),
)


def test_a_short_soak_counts_and_leaves_nothing_behind(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Each client makes one round at least and each attacker one attack,
    also in a soak of 0.1 s and on a busy machine.
    """
    report = soaking.soak(0.1, tmp_path_factory.mktemp("s"), ATTACK)
    assert report.faults() == []
    assert report.elements >= 6 * COUNT
    assert report.requests >= 6 * 4 * 2
    assert list(report.attacks) == [f"RS.io: {ATTACK}"]
    assert report.attacks.total() >= 8


def test_a_flat_soak_has_no_fault() -> None:
    """The memory in use may grow in the first two minutes, and by 5 MiB after them; the process
    may have 320 MiB more than at first.
    """
    assert _report(*FLAT, peak=371 * MIB).faults() == []


@pytest.mark.parametrize(
    ("report", "fault"),
    [
        (_report(*FLAT, errors=("stay: lost",)), "an honest client saw an error: stay: lost"),
        (_report(*FLAT, reported=("ValueError: x",)), "the server reported: ValueError: x"),
        (
            _report(*FLAT[:3], _sample(600, 75 * MIB + 1)),
            "the memory in use grew from 70.0 MiB to 75.0 MiB at 600 s; 75.0 is allowed",
        ),
        (
            _report(*FLAT, peak=371 * MIB + 1),
            "the process had 371.0 MiB in memory; 371.0 is allowed",
        ),
        (
            _report(*FLAT[:3], _sample(600, 70 * MIB, files=13)),
            "left behind: 1 open files, 0 tasks",
        ),
        (
            _report(*FLAT, _sample(600, 70 * MIB, blocks=1051)),
            "left behind: 51 blocks of memory that no collection frees",
        ),
        (
            _report(*FLAT[:3], _sample(600, 70 * MIB, tasks=14)),
            "left behind: 0 open files, 2 tasks",
        ),
    ],
    ids=["client", "server", "memory", "peak", "files", "blocks", "tasks"],
)
def test_each_fault_of_a_soak_is_named(report: Report, fault: str) -> None:
    """One fault, one line."""
    assert report.faults() == [fault]


def test_a_large_server_may_grow_by_a_twentieth() -> None:
    """5 % of 200 MiB are more than 5 MiB."""
    assert _report(_sample(0, MIB), _sample(120, 200 * MIB), _sample(600, 210 * MIB)).faults() == []
    assert (
        len(_report(_sample(0, MIB), _sample(120, 200 * MIB), _sample(600, 211 * MIB)).faults())
        == 1
    )


def test_the_attacks_are_shown_by_row_or_by_chapter() -> None:
    """A chapter has the number of its rows, and of all attacks that they made."""
    by_row = list(_report(*FLAT).lines(each_attack=True))
    assert "| RS.io: b | 1 | 3 |" in by_row
    by_chapter = list(_report(*FLAT).lines(each_attack=False))
    assert "| RS.io | 2 | 5 |" in by_chapter
    assert "| all | 3 | 6 |" in by_chapter
    assert "| after the load | 75.0 | 76.0 | 1,000 | 12 | 12 | 0 | 10 | 5 |" in by_chapter


@pytest.mark.parametrize(("errors", "status"), [((), 0), (("lost",), 1)], ids=["flat", "error"])
def test_the_exit_status_is_the_verdict(
    errors: tuple[str, ...],
    status: int,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A fault is printed to standard error; the page is written in any case."""
    monkeypatch.setattr(
        soaking, "soak", lambda seconds, folder, only: _report(*FLAT, errors=errors)
    )
    assert soaking.main(["--seconds", "1", "--docs", str(tmp_path)]) == status
    assert ("failed: an honest client saw an error: lost" in capsys.readouterr().err) is bool(
        errors
    )
    assert "| errors |" in (tmp_path / soaking.PAGE).read_text(encoding="utf-8")


def test_the_page_shows_a_soak_of_ten_minutes() -> None:
    """`python -m campaigns soak --docs docs/explanation` writes it."""
    text = RECORDED.read_text(encoding="utf-8")
    assert "| errors | 0 |" in text
    assert "| before the load |" in text
    assert "| after the load |" in text
    assert "in use, MiB" in text


def test_each_stream_has_its_own_elements() -> None:
    """Of many lengths, and the same each time."""
    assert list(elements(1)) == list(elements(1))
    assert list(elements(1)) != list(elements(2))
    assert len({len(element) for element in elements(1)}) > 15
