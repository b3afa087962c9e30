"""The comments of a codec cite sections of the page about its protocol."""

import re
from pathlib import Path

import pytest

import penstock.protocols

ROOT = Path(__file__).parents[2]
CODE = Path(penstock.protocols.__file__).parent  # in the installed wheel, too


@pytest.mark.parametrize("protocol", ["rsio", "reactivesocket"])
def test_each_cited_section_is_on_the_page(protocol: str) -> None:
    """`wire §Messages` names a heading of docs/reference/rsio.md, or of reactivesocket.md,
    word for word.
    """
    page = (ROOT / f"docs/reference/{protocol}.md").read_text(encoding="utf-8")
    headings = set(re.findall(r"^## (.+)$", page, re.MULTILINE))
    # Other words may follow a citation in its line, so it is compared with the headings instead of
    # parsed.
    cited = [
        # A comment may break the name of a section over two lines.
        re.sub(r"\s*\n\s*#?\s*", " ", text[match.end() : match.end() + 80])
        for path in (CODE / protocol).rglob("*.py")
        for text in [path.read_text(encoding="utf-8")]
        for match in re.finditer(r"wire §(?!…)", text)
    ]
    assert len(cited) >= 10
    assert [text for text in cited if not text.startswith(tuple(headings))] == []
