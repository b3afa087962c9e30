"""The site of the documentation: versions beside each other, and the campaign that looks at it."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest
import trio

from campaigns.site._links import dead_links
from campaigns.site._looks import looks_of, served, switch_version
from release import site
from tests._real_time import HANGS_AFTER
from tests.browser._chromium import run_chromium
from tests.repo._tree import ROOT

PAGE = """<!doctype html><html lang=en><title>{0}</title>
<meta name=viewport content="width=device-width, initial-scale=1">
<main><h1>{0}</h1>{1}</main></html>"""


def _built(folder: Path, **pages: str) -> Path:
    folder.mkdir()
    for name, body in pages.items():
        (folder / f"{name}.html").write_text(PAGE.format(name, body))
    return folder


def _listed(folder: Path) -> list[dict[str, object]]:
    text = (folder / "versions.js").read_text()
    rows = text.removeprefix("globalThis.penstockVersions = ").removesuffix(";\n")
    listed: list[dict[str, object]] = json.loads(rows)
    return listed


def test_each_version_has_a_folder_and_stable_is_the_highest(tmp_path: Path) -> None:
    """By its numbers, not by its letters. What was there stays."""
    for name in ("0.9", "latest", "0.10"):
        built = _built(tmp_path / f"built {name}", index=f"this is {name}", other="")
        site.add(tmp_path / "site", built, name)
    root = tmp_path / "site"
    listed = [(each["name"], each["title"]) for each in _listed(root)]
    assert listed == [
        *(("stable", "stable (0.10)"), ("latest", "latest")),
        *(("0.10", "0.10"), ("0.9", "0.9")),
    ]
    assert _listed(root)[0]["pages"] == ["index.html", "other.html"]
    assert "this is 0.10" in (root / "stable/index.html").read_text()
    assert "this is 0.9" in (root / "0.9/index.html").read_text()
    assert 'url=stable/index.html"' in (root / "index.html").read_text()
    assert list(dead_links(root)) == []


def test_a_version_that_is_built_again_takes_the_place_of_the_old_one(tmp_path: Path) -> None:
    """No page of the old one is left."""
    site.add(tmp_path / "site", _built(tmp_path / "a", index="", old=""), "latest")
    site.add(tmp_path / "site", _built(tmp_path / "b", index=""), "latest")
    assert _listed(tmp_path / "site") == [
        {"name": "latest", "title": "latest", "pages": ["index.html"]}
    ]
    assert 'url=latest/index.html"' in (tmp_path / "site/index.html").read_text()


@pytest.mark.parametrize("name", ["stable", "", "../up", "a/b", ".x"])
def test_a_name_that_cannot_be_a_folder_is_refused(tmp_path: Path, name: str) -> None:
    """Or that is made by itself."""
    with pytest.raises(SystemExit, match="cannot be the name of a version"):
        site.add(tmp_path / "site", _built(tmp_path / "a", index=""), name)


def test_a_folder_without_pages_is_refused(tmp_path: Path) -> None:
    """The site stays as it was."""
    with pytest.raises(SystemExit, match=r"has no index\.html"):
        site.add(tmp_path / "site", _built(tmp_path / "a", other=""), "0.1")
    assert not (tmp_path / "site").exists()


def test_dead_links_are_found(tmp_path: Path) -> None:
    """To files and to anchors; links that live, and addresses of others, are not."""
    body = """<h2 id="here">x</h2> <a href="#here">a</a> <a href="two.html#there">b</a>
    <a href="two.html#gone">c</a> <a href="three.html">d</a> <a href="https://x.example/y">e</a>
    <img src="no.png" alt="x"> <a href="#nowhere">f</a>"""
    _built(tmp_path / "a", one=body, two="<p id=there>x</p>")
    assert [(each.address, each.why) for each in dead_links(tmp_path / "a")] == [
        ("two.html#gone", "the page has no such anchor"),
        ("three.html", "there is no such file"),
        ("no.png", "there is no such file"),
        ("#nowhere", "the page has no such anchor"),
    ]


async def test_a_page_that_scrolls_sideways_or_has_low_contrast_is_found(tmp_path: Path) -> None:
    """On a narrow window; axe is told apart by its rules."""
    from tests.browser._programs import npm_package

    axe = (Path(npm_package("axe-core")) / "axe.min.js").read_text(encoding="utf-8")
    faulty = "<p style='color:#aaa;width:600px'>text</p><img src=x.png>"
    _built(tmp_path / "a", good="<p>text</p>", faulty=faulty)
    (tmp_path / "a/x.png").write_bytes(b"")
    with trio.fail_after(HANGS_AFTER), served(tmp_path / "a") as origin:
        async with run_chromium() as browser:
            page = await browser.open(f"{origin}/good.html")
            assert await looks_of(page, f"{origin}/good.html", "good", axe) == []
            faults = await looks_of(page, f"{origin}/faulty.html", "faulty", axe, ["narrow"])
    assert {each.rule for each in faults} == {"scrolls sideways", "color-contrast", "image-alt"}


def _repository(folder: Path) -> Path:
    """Return a small project with docs, at two refs."""

    def git(*words: str) -> None:
        identity = ("-c", "user.name=x", "-c", "user.email=x@example.org")
        subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True)

    docs = folder / "docs"
    shutil.copytree(ROOT / "docs/_static", docs / "_static")
    (docs / "conf.py").write_text(
        'project = "p"\nhtml_theme = "furo"\nhtml_static_path = ["_static"]\n'
        'html_js_files = ["versions.js"]\n'
    )
    git("init", "-q")
    for ref, pages in (("v0.1.0", ["index"]), ("v0.2.0", ["index", "new"])):
        for page in pages:
            text = f"{page}\n=====\n\nAt {ref}.\n"
            (docs / f"{page}.rst").write_text(text + "\n.. toctree::\n   :glob:\n\n   n*\n")
        git("add", "-A")
        git("commit", "-qm", ref)
        git("tag", ref)
    return folder


async def test_two_refs_are_two_versions_with_a_list_that_works_from_files(tmp_path: Path) -> None:
    """Each page names that of `stable` as its canonical one. A page that the other version does not
    have leads to its first page. No server is needed.
    """
    pytest.importorskip("furo")
    repository, folder = tmp_path / "repository", tmp_path / "site"
    repository.mkdir()
    base = "https://docs.example.org"
    refs = ("0.1=v0.1.0", "0.2=v0.2.0", "latest=HEAD")
    words = [str(folder), "--base", base, "--repository", str(_repository(repository)), *refs]
    await trio.to_thread.run_sync(site.main, words)
    assert "At v0.1.0." in (folder / "0.1/index.html").read_text()
    assert "At v0.2.0." in (folder / "stable/new.html").read_text()
    canonical = f'<link rel="canonical" href="{base}/stable/new.html"'
    assert canonical in (folder / "latest/new.html").read_text()
    assert "<title>Penstock 0.1" in (folder / "0.1/index.html").read_text()
    assert list(dead_links(folder)) == []
    listed = await trio.run_process(
        ["git", "worktree", "list"], cwd=repository, capture_stdout=True
    )
    assert listed.stdout.count(b"\n") == 1
    origin = folder.as_uri()
    with trio.fail_after(HANGS_AFTER):
        async with run_chromium() as browser:
            page = await browser.open(f"{origin}/latest/index.html")
            assert await switch_version(page, f"{origin}/latest/index.html", "0.1") == []
            [fault] = await switch_version(page, f"{origin}/latest/new.html", "0.1")
            assert fault.where == f"{origin}/0.1/index.html"
