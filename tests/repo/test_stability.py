"""The public names: `docs/reference/stability.md` lists those of each stable package.

A stable name changes with a deprecation, so a new one is a decision: it is written there.
"""

import ast
import importlib
import re
from pathlib import Path

from penstock.spi import _hookspecs
from tests.repo._tree import front_doors, product_files, python_files, refuse, text_of, tree_of

PAGE = Path("docs/reference/stability.md")
STABLE = (
    "penstock",
    "penstock.api",
    "penstock.streams",
    "penstock.streams.ops",
    "penstock.logs",
    "penstock.brokers",
    "penstock.spi",
    "penstock.testing",
    "penstock.aio",
    "penstock.blocking",
    "penstock.notebook",
    "penstock_tck",
    "penstock_tck.lead",
)
PRIVATE_MARK = "```{admonition} Private\n"


def listed() -> dict[str, list[str]]:
    """The names on the page, by package."""
    sections = re.split(r"^### `([\w.]+)`\n", text_of(PAGE), flags=re.MULTILINE)[1:]
    return {
        package: re.findall(r"`(\w+)`", text.partition("\n#")[0].partition("\n\n")[2])
        for package, text in zip(sections[::2], sections[1::2], strict=True)
    }


def test_the_page_lists_each_stable_name() -> None:
    """In the order of the alphabet, and no other name."""
    offered = {name: sorted(importlib.import_module(name).__all__) for name in STABLE}
    differ = [
        f"{package}: {name}"
        for package in offered.keys() | listed().keys()
        for name in set(offered.get(package, [])) ^ set(listed().get(package, []))
    ]
    refuse(sorted(differ), f"{PAGE} and the front doors differ by:")
    assert listed() == offered


def test_the_page_lists_each_hook() -> None:
    """A plugin defines a function of that name, and imports none."""
    listed_hooks = re.findall(r"`(penstock_\w+)`", text_of(PAGE).partition("## The hooks\n")[2])
    hooks = [name for name in dir(_hookspecs) if name.startswith("penstock_")]
    assert listed_hooks == hooks


def test_plugins_the_kit_and_examples_use_stable_names_only() -> None:
    """A name that a front door has for penstock's own layers is not for them."""
    stable = {name: set(importlib.import_module(name).__all__) for name in STABLE}
    outside = [path for path in product_files() if path.parts[0] != "src"]
    used = [
        (path, name)
        for path in (*outside, *python_files("examples"))
        for node in tree_of(path).body
        for name in _private_names(node, stable)
    ]
    refuse((f"{path}: {name}" for path, name in used), "these names are private:")


def _private_names(node: ast.stmt, stable: dict[str, set[str]]) -> list[str]:
    if not isinstance(node, ast.ImportFrom) or node.module not in stable:
        return []
    return [
        f"{node.module}.{alias.name}"
        for alias in node.names
        if alias.name not in stable[node.module] and f"{node.module}.{alias.name}" not in stable
    ]


def test_the_page_of_a_private_package_says_so() -> None:
    """And that of a stable package does not."""
    packages = {f"penstock.{name}" for name in (*front_doors(), "streams.ops")}
    pages = {name: text_of(Path(f"docs/reference/{name}.md")) for name in packages}
    refuse(
        sorted(name for name, text in pages.items() if (PRIVATE_MARK in text) == (name in STABLE)),
        f"these pages need, or must not have, {PRIVATE_MARK!r}:",
    )
