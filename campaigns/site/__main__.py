"""Look at the built documentation, as it is published in two versions: dead links, the list of
versions, and each page in Chromium with axe, wide and narrow, light and dark.

--html FOLDER  pages that are built already
--only TEXT    pages whose path has one of these texts
--links        the links alone: needs neither Chromium nor axe

axe-core is a package of npm: `nox -s site` installs it.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import trio

from campaigns.site._links import dead_links, pages_of
from campaigns.site._looks import SCHEMES, WIDTHS, Fault, looks_of, served, switch_version
from release.site import add
from tests.browser._chromium import run_chromium

ROOT = Path(__file__).parents[2]
SHOWN, OTHER = "latest", "0.1"
"""The version that is looked at, and another one with the same pages."""

TABS = 2
"""Pages that are looked at at once."""

PATIENCE = 300.0
"""Seconds for one page in all looks, on a busy machine."""


def build(folder: Path) -> None:
    """Build the documentation."""
    options = ("-q", "-E", "-j", "auto", "-b", "html")
    words = [sys.executable, "-m", "sphinx", *options, str(ROOT / "docs"), str(folder)]
    subprocess.run(words, check=True)


def axe_source() -> str:
    """Return the text of axe."""
    path = Path(os.environ.get("PENSTOCK_NPM", "")) / "node_modules/axe-core/axe.min.js"
    if not path.exists():
        sys.exit(
            "axe-core is missing: `nox -s site` installs it, or give the folder with "
            "node_modules/axe-core in PENSTOCK_NPM"
        )
    return path.read_text(encoding="utf-8")


async def look(root: Path, pages: list[Path]) -> list[Fault]:
    """Return the faults of these pages."""
    axe, faults, left = axe_source(), list[Fault](), list(reversed(pages))
    with served(root.parent) as origin:
        async with run_chromium() as browser, trio.open_nursery() as nursery:

            async def work() -> None:
                page = await browser.open(f"{origin}/{SHOWN}/index.html")
                while left:
                    name = left.pop().relative_to(root).as_posix()
                    with trio.fail_after(PATIENCE):
                        found = await looks_of(page, f"{origin}/{SHOWN}/{name}", name, axe)
                    faults.extend(found)
                    for each in found:
                        print(each, flush=True)

            page = await browser.open(f"{origin}/index.html")
            names = {each.relative_to(root).as_posix() for each in pages}
            name = sorted(names & {"how-to/nats.html", "index.html"})[:1]
            for each in name:
                with trio.fail_after(PATIENCE):
                    faults += await switch_version(page, f"{origin}/{SHOWN}/{each}", OTHER)
            for _ in range(TABS):
                nursery.start_soon(work)
    return faults


def main(arguments: list[str]) -> int:
    """Look, print what was found, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--html", type=Path)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--links", action="store_true")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="penstock-site-") as made:
        built, site = given.html or Path(made) / "built", Path(made) / "site"
        if given.html is None:
            build(built)
        for version in (SHOWN, OTHER):
            add(site, built, version)
        root = site / SHOWN
        dead = list(dead_links(site))
        for each in dead:
            print(each)
        pages = pages_of(root)
        chosen = [each for each in pages if _is_chosen(each, root, given.only)]
        verdict = f"{len(pages)} pages without the browser, {len(dead)} dead links"
        faults: list[Fault] = []
        if not given.links:
            if not any(map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))):
                sys.exit("this machine has no Chromium (Debian: the package chromium)")
            faults = trio.run(look, root, chosen)
            rules = Counter(each.rule for each in faults)
            shown = ", ".join(f"{rule} {count}" for rule, count in rules.most_common()) or "none"
            verdict = (
                f"{len(pages)} pages in two versions, {len(dead)} dead links; {len(chosen)} pages in "
                f"{len(WIDTHS) * len(SCHEMES)} looks, faults: {shown}"
            )
    print(verdict)
    return 1 if dead or faults else 0


def _is_chosen(path: Path, root: Path, texts: list[str]) -> bool:
    name = str(path.relative_to(root))
    return not texts or any(text in name for text in texts)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
