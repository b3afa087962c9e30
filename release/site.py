"""Put built documentation into a site with a folder for each version:
``python -m release.site SITE --base URL NAME=REF...``

``python -m release.site public --base https://docs.example.org/ latest=main 0.1=v0.1.0`` builds the
docs of two refs of git into ``public/latest`` and ``public/0.1``.

* ``stable`` is a copy of the highest version. Its addresses stay the same, so each page names that
  of ``stable`` as its canonical one, for search engines.
* ``versions.js`` names the versions and their pages, for the list in the sidebar of every version,
  old ones as well.
* Versions that the folder has already stay in it.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any, Final

from release._words import ROOT, run, say

LATEST: Final = "latest"
"""The newest commit, released or not."""

STABLE: Final = "stable"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]*")
_NUMBER: Final = re.compile(r"\d+(\.\d+)*")


def build(ref: str, name: str, to: Path, base: str, repository: Path = ROOT) -> None:
    """Build the docs of a ref of git as the version `name`, in a folder. `base` is the address at
    which the site is published.
    """
    with tempfile.TemporaryDirectory() as made:
        tree = Path(made) / "tree"
        run("git", "worktree", "add", "--detach", str(tree), ref, cwd=repository)
        try:
            # The code of the ref is documented, in place of what is installed.
            path = os.pathsep.join(str(tree / each) for each in ("src", "tck/src"))
            settings = {
                "release": name,
                "version": name,
                "html_title": f"Penstock {name}",
                "html_baseurl": f"{base.rstrip('/')}/{STABLE}/",
            }
            words = [f"-D{key}={value}" for key, value in settings.items()]
            options = ("-q", "-E", "-j", "auto", "-b", "html", *words, str(tree / "docs"), str(to))
            environment = {**os.environ, "PYTHONPATH": path}
            command = [sys.executable, "-m", "sphinx", *options]
            subprocess.run(command, check=True, env=environment)
        finally:
            run("git", "worktree", "remove", "--force", str(tree), cwd=repository)


def add(site: Path, built: Path, name: str) -> None:
    """Put a built version into a site, in the place of one with the same name."""
    if not _NAME.fullmatch(name) or name == STABLE:
        sys.exit(
            f"{name!r} cannot be the name of a version: give latest, or a number like 0.1; "
            f"{STABLE!r} is made from the highest one"
        )
    if not (built / "index.html").exists():
        sys.exit(f"{built} has no index.html: give the folder of built pages")
    site.mkdir(parents=True, exist_ok=True)
    _copy(built, site / name)
    numbers = [each for each in versions(site) if _NUMBER.fullmatch(each)]
    if numbers:
        _copy(site / numbers[0], site / STABLE)
    _write_index(site)


def _copy(source: Path, to: Path) -> None:
    shutil.rmtree(to, ignore_errors=True)
    shutil.copytree(source, to, ignore=shutil.ignore_patterns(".doctrees", ".buildinfo"))


def versions(site: Path) -> list[str]:
    """Return the names of the versions of a site: the highest number first, then others."""
    found = [each.parent.name for each in site.glob("*/index.html")]
    return sorted(found, key=_order, reverse=True)


def _order(name: str) -> tuple[int, list[int], str]:
    is_number = _NUMBER.fullmatch(name) is not None
    return int(is_number), [int(each) for each in name.split(".")] if is_number else [], name


def _write_index(site: Path) -> None:
    names = versions(site)
    number = next((each for each in names if _NUMBER.fullmatch(each)), None)
    rows: list[dict[str, Any]] = []
    # The newest commit and the stable version come first.
    for name in sorted(names, key=lambda each: each not in (LATEST, STABLE)):
        title = f"{STABLE} ({number})" if name == STABLE else name
        paths = (site / name).rglob("*.html")
        pages = sorted(path.relative_to(site / name).as_posix() for path in paths)
        rows.append({"name": name, "title": title, "pages": pages})
    text = json.dumps(rows, indent=0, ensure_ascii=True)
    (site / "versions.js").write_text(f"globalThis.penstockVersions = {text};\n", encoding="utf-8")
    first = STABLE if STABLE in names else names[0]
    links = "\n".join(
        f'<li><a href="{escape(row["name"])}/index.html">{escape(row["title"])}</a></li>'
        for row in rows
    )
    (site / "index.html").write_text(_INDEX.format(first=first, links=links), encoding="utf-8")


_INDEX: Final = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="refresh" content="0; url={first}/index.html">
<title>Penstock: versions of the documentation</title>
</head>
<body>
<main>
<h1>Versions of the documentation</h1>
<ul>
{links}
</ul>
</main>
</body>
</html>
"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Build each version, and put it into the site."""
    parser = argparse.ArgumentParser(prog="python -m release.site", description=__doc__)
    parser.add_argument("site", type=Path)
    parser.add_argument("--base", required=True, help="the address of the published site")
    parser.add_argument("--repository", type=Path, default=ROOT)
    parser.add_argument("version", nargs="+", help="NAME=REF, as in 0.1=v0.1.0")
    given = parser.parse_args(arguments)
    for word in given.version:
        name, mark, ref = word.partition("=")
        if not mark or not ref:
            parser.error(f"{word!r} is no NAME=REF; give for example latest=main")
        with tempfile.TemporaryDirectory() as made:
            build(ref, name, Path(made), given.base, given.repository)
            add(given.site, Path(made), name)
        say(f"{name}: {ref}, in {given.site / name}")


if __name__ == "__main__":
    main()
