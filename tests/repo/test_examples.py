"""The examples: short, runnable, each with its output beside it,
and each quoted by the documentation.
"""

import ast
from pathlib import Path

from tests.repo._tree import files, python_files, refuse, text_of, tree_of

# The folders below examples/ hold the parts of the demo, and files of pages that show several:
# tests/examples/test_pages.py runs those.
EXAMPLES = [path for path in python_files("examples") if path.parent == Path("examples")]
DEMO = Path("examples/demo.py")
LONGEST_EXAMPLE = 75  # lines


def _has_a_main(path: Path) -> bool:
    return [type(node) for node in tree_of(path).body if getattr(node, "name", "") == "main"] == [
        ast.AsyncFunctionDef
    ]


def test_each_example_has_its_output_and_each_output_its_example() -> None:
    """The output of an example is stored beside it, under the same name. The demo has no output
    file: it prints what it measures.
    """
    assert DEMO in EXAMPLES
    assert {path.stem for path in files("examples") if path.suffix == ".out"} == {
        path.stem for path in EXAMPLES if path != DEMO
    }


def test_the_list_of_examples_names_each_of_them() -> None:
    """examples/README.md links each example, in the order in which to read them."""
    listed = text_of(Path("examples/README.md"))
    refuse(
        (path for path in EXAMPLES if f"]({path.name})" not in listed), "examples/README.md lacks:"
    )


def test_an_example_is_short() -> None:
    """An example has at most LONGEST_EXAMPLE lines."""
    lengths = {path: text_of(path).count("\n") for path in EXAMPLES}
    refuse(
        (f"{path}: {lines} lines" for path, lines in lengths.items() if lines > LONGEST_EXAMPLE),
        f"{LONGEST_EXAMPLE} lines are allowed:",
    )


def test_an_example_says_its_subject_and_can_be_started() -> None:
    """An example has a docstring and an `async def main()`."""
    refuse(
        (path for path in EXAMPLES if not ast.get_docstring(tree_of(path))),
        "these examples lack a docstring:",
    )
    refuse(
        (path for path in EXAMPLES if not _has_a_main(path)),
        "these examples lack an `async def main()`:",
    )


def test_each_example_is_quoted_by_a_page() -> None:
    """The documentation includes the file itself (literalinclude), so the code
    that it shows has been run.
    """
    pages = "\n".join(text_of(page) for page in files("docs", "README.md") if page.suffix == ".md")
    refuse(
        (path for path in EXAMPLES if f"examples/{path.name}" not in pages),
        "no page of docs includes:",
    )


def test_no_decorator_stands_twice_on_a_class_or_a_function() -> None:
    """A second `@dataclass` changes nothing, so only this test can see it."""
    twice = []
    for path in python_files(".ci", "campaigns", "docs", "examples", "plugins", "src", "tck"):
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                lines = [ast.unparse(each) for each in node.decorator_list]
                if len(set(lines)) < len(lines):
                    twice.append(f"{path}:{node.lineno}")
    refuse(twice, "a decorator stands twice:")
