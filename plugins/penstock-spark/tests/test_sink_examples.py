"""The examples print what the pages show.
They run in the session of the tests, because a new one takes ten seconds.
"""

import importlib.util
from pathlib import Path
from typing import Any

import pytest
import trio

EXAMPLES = Path(__file__).parent.parent / "examples"


def main_of(name: str) -> Any:
    """Return the function ``main`` of an example."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.main


def test_publish_dataframe_prints_what_the_page_shows(
    spark: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """Only the three requested rows are printed."""
    trio.run(main_of("publish_dataframe"), spark)
    assert capsys.readouterr().out == (EXAMPLES / "publish_dataframe.out").read_text()


def test_write_stream_prints_what_the_page_shows(
    spark: Any, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Each line once, although the query runs twice."""
    trio.run(main_of("write_stream"), spark, tmp_path)
    assert capsys.readouterr().out == (EXAMPLES / "write_stream.out").read_text()


def test_dead_letters_prints_what_the_page_shows(
    spark: Any, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Good rows and bad ones, each in their log."""
    trio.run(main_of("dead_letters"), spark, tmp_path)
    assert capsys.readouterr().out == (EXAMPLES / "dead_letters.out").read_text()


def test_supervised_query_prints_what_the_page_shows(
    spark: Any, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """One failure, because the server is not up; then all rows, once."""
    main_of("supervised_query")(spark, tmp_path)
    assert capsys.readouterr().out == (EXAMPLES / "supervised_query.out").read_text()


@pytest.mark.heavy
def test_keyed_pipeline_prints_what_the_page_shows(
    spark: Any, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The orders of each customer, in their order over a restart of the receiver; and the audit."""
    trio.run(main_of("keyed_pipeline"), spark, tmp_path)
    assert capsys.readouterr().out == (EXAMPLES / "keyed_pipeline.out").read_text()
