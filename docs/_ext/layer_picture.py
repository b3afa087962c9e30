"""Draw docs/layers.svg from the code: `python docs/_ext/layer_picture.py`.

A box is a package, a row is a layer of the contract in pyproject.toml. An arrow is an import. If a
package also imports what the end of its arrow imports, that arrow is left out: the picture has
the fewest arrows from which all imports follow. Facts are rough on purpose (sizes in three
classes), so that the picture changes with the structure, and not with each commit.
"""

import ast
import sys
import tomllib
from collections.abc import Iterator
from html import escape
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).parents[2]
SRC = ROOT / "src/penstock"
PICTURE = ROOT / "docs/layers.svg"

WIDTH, BOX_HEIGHT, ROW, MARGIN, GAP = 940, 44, 104, 16, 24
SIZES = ((1_000, "small"), (3_000, "medium"))
"""Below these numbers of lines."""
FILL = {"small": "#eef4fb", "medium": "#cfe1f5", "large": "#a4c6ec"}


def rows() -> list[list[str]]:
    """Return the packages of each layer, from the top."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = project["tool"]["importlinter"]["contracts"]
    layers = next(each["layers"] for each in contracts if each.get("containers") == ["penstock"])
    return [[name.strip(" ()") for name in row.split("|")] for row in layers]


def files_of(package: str) -> list[Path]:
    """Return the files of a package."""
    return sorted((SRC / package).rglob("*.py"))


def imports_of(package: str) -> set[str]:
    """Return the packages of penstock that a package imports."""
    found = {name for path in files_of(package) for name in _imported(path)}
    return {name for name in found if (SRC / name).is_dir()} - {package}


def _imported(path: Path) -> Iterator[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    # Imports for type checkers alone do not run.
    checked = [node for node in ast.walk(tree) if isinstance(node, ast.If) and _is_checked(node)]
    skipped = {id(below) for node in checked for part in node.body for below in ast.walk(part)}
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        for parts in (name.split(".") for name in names):
            if parts[0] == "penstock" and len(parts) > 1:
                yield parts[1]


def _is_checked(node: ast.If) -> bool:
    return "TYPE_CHECKING" in ast.unparse(node.test)


def arrows(imports: dict[str, set[str]]) -> list[tuple[str, str]]:
    """Return the imports that do not follow from others."""

    def reached(package: str) -> set[str]:
        direct = imports[package]
        return direct | {far for near in direct for far in reached(near)}

    return sorted(
        (package, name)
        for package, direct in imports.items()
        for name in direct
        if not any(name in reached(other) for other in direct - {name})
    )


def size_of(package: str) -> str:
    """Return the class of a package's number of lines."""
    lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in files_of(package))
    return next((name for bound, name in SIZES if lines < bound), "large")


def picture() -> str:
    """Return the picture as SVG."""
    layers = rows()
    packages = [name for row in layers for name in row]
    imports = {name: imports_of(name) & set(packages) for name in packages}
    shown = arrows(imports)
    layout = Layout(layers, shown)
    height = MARGIN * 2 + ROW * (len(layers) - 1) + BOX_HEIGHT + 30
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" '
            f'viewBox="0 0 {WIDTH} {height}" '
            'font-family="Helvetica, Arial, sans-serif" role="img" '
            'aria-label="The packages of penstock and what they import">'
        ),
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        (
            '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
            'markerHeight="7" orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="#5b6b7b"/>'
            "</marker></defs>"
        ),
        *(_arrow(layout.way(above, below)) for above, below in shown),
        *(_box(name, *layout.box(name)) for name in packages),
        *_legend(height),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


class Layout:
    """Where the boxes are: in the row of their layer, near what they have arrows with."""

    def __init__(self, layers: list[list[str]], shown: list[tuple[str, str]]) -> None:
        self._row = {name: number for number, row in enumerate(layers) for name in row}
        self._middle = dict.fromkeys(self._row, WIDTH / 2)
        near = {name: [b for a, b in shown if a == name] for name in self._row}
        near_above = {name: [a for a, b in shown if b == name] for name in self._row}
        for beside in (near, near_above, near, near_above, near):
            for row in reversed(layers) if beside is near else layers:
                self._place(row, beside)

    def _place(self, row: list[str], near: dict[str, list[str]]) -> None:
        wanted = {
            name: sum(map(self._middle.__getitem__, near[name])) / len(near[name])
            if near[name]
            else self._middle[name]
            for name in row
        }
        order = sorted(row, key=lambda name: (wanted[name], name))
        least = sum(self._width(name) for name in order) + GAP * (len(order) - 1)
        left, right = 0.0, float(WIDTH - MARGIN - least)
        edge = float(MARGIN)
        for name in order:
            width = self._width(name)
            left = min(max(wanted[name] - width / 2, edge), max(right, edge))
            self._middle[name] = left + width / 2
            edge = left + width + GAP
            right += width + GAP

    @staticmethod
    def _width(name: str) -> int:
        return max(96, 11 * len(name) + 30)

    def box(self, name: str) -> tuple[int, int, int]:
        """Return the left edge, the top and the width of a box."""
        width = self._width(name)
        return round(self._middle[name] - width / 2), MARGIN + ROW * self._row[name], width

    def way(self, above: str, below: str) -> list[tuple[int, int]]:
        """Return points from one box to another, past the boxes of the rows between them."""
        begin, end = self._middle[above], self._middle[below]
        first, last = self._row[above], self._row[below]
        points = [(round(begin), MARGIN + ROW * first + BOX_HEIGHT)]
        for row in range(first + 1, last):
            x = begin + (end - begin) * (row - first) / (last - first)
            y = MARGIN + ROW * row
            x = self._beside_boxes(row, x)
            points += [(round(x), y), (round(x), y + BOX_HEIGHT)]
        return [*points, (round(end), MARGIN + ROW * last - 2)]

    def _beside_boxes(self, row: int, x: float) -> float:
        boxes = [self.box(name) for name in self._row if self._row[name] == row]
        for left, _, width in sorted(boxes):
            if left - 10 < x < left + width + 10:
                return left - 12 if x < left + width / 2 else left + width + 12
        return x


def _box(name: str, left: int, top: int, width: int) -> str:
    return (
        f'<rect x="{left}" y="{top}" width="{width}" height="{BOX_HEIGHT}" rx="6" '
        f'fill="{FILL[size_of(name)]}" stroke="#33506e"/>'
        f'<text x="{left + width // 2}" y="{top + 28}" text-anchor="middle" font-size="17" '
        f'fill="#10212f">{escape(name)}</text>'
    )


def _arrow(points: list[tuple[int, int]]) -> str:
    curves = [
        f"C{x},{(y + to_y) // 2} {to_x},{(y + to_y) // 2} {to_x},{to_y}"
        for (x, y), (to_x, to_y) in pairwise(points)
    ]
    begin = f"M{points[0][0]},{points[0][1]}"
    return (
        f'<path d="{begin} {" ".join(curves)}" fill="none" stroke="#5b6b7b" stroke-width="1.4" '
        'marker-end="url(#tip)"/>'
    )


def _legend(height: int) -> Iterator[str]:
    for number, (size, text) in enumerate(
        (("small", "below 1,000 lines"), ("medium", "below 3,000"), ("large", "more"))
    ):
        left, top = MARGIN + 170 * number, height - 26
        yield (
            f'<rect x="{left}" y="{top}" width="18" height="14" fill="{FILL[size]}" '
            'stroke="#33506e"/>'
        )
        yield f'<text x="{left + 26}" y="{top + 12}" font-size="13" fill="#10212f">{text}</text>'


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
    sys.stdout.write(f"{PICTURE.relative_to(ROOT)} is drawn\n")
