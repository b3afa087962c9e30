"""The examples: short, runnable, each with what it prints beside it, and each quoted by the documentation."""

import ast
from pathlib import Path

import pytest

from tests.repo._tree import files, python_files, text_of, tree_of

# What stands below the folder belongs to the demo: its scenes, and the screen that shows them.
EXAMPLES = [path for path in python_files("examples") if path.parent == Path("examples")]
DEMO = Path("examples/demo.py")


def test_there_are_examples() -> None:
    """The folder is not empty, and the main job is in it."""
    assert DEMO in EXAMPLES


def test_each_example_has_its_output_and_each_output_its_example() -> None:
    """What an example prints is stored beside it, with the same name; but for the demo, which prints what it measures."""
    assert {path.stem for path in files("examples") if path.suffix == ".out"} == {path.stem for path in EXAMPLES if path != DEMO}


@pytest.mark.parametrize("path", EXAMPLES, ids=str)
def test_each_example_has_its_place_on_the_path(path: Path) -> None:
    """examples/README.md names each example, in the order in which to read them."""
    assert f"]({path.name})" in text_of(Path("examples/README.md"))


@pytest.mark.parametrize("path", EXAMPLES, ids=str)
def test_an_example_is_short_and_says_what_it_shows(path: Path) -> None:
    """At most 60 lines, a docstring, and an `async def main()` that a reader can start."""
    mains = [node for node in tree_of(path).body if isinstance(node, ast.AsyncFunctionDef) and node.name == "main"]
    assert text_of(path).count("\n") <= 60
    assert ast.get_docstring(tree_of(path))
    assert len(mains) == 1


@pytest.mark.parametrize("path", EXAMPLES, ids=str)
def test_an_example_is_quoted_by_a_page(path: Path) -> None:
    """The documentation shows the file itself (literalinclude), so that what it shows has been run."""
    pages = [page for page in files("docs", "README.md") if page.suffix == ".md" and f"examples/{path.name}" in text_of(page)]
    assert pages, f"no page of docs shows {path}"
