"""The words that people search for are on the pages that answer them, so the search of the
documentation finds these pages.
"""

from pathlib import Path

import pytest

from tests.repo._tree import text_of

# The search compares stems: `authenticate` is found by `authentication`.
# The pages must still have the word itself.
WORDS = {
    "asyncio": ["docs/how-to/asyncio.md"],
    "authentication": ["docs/how-to/authenticate.md"],
    "backpressure": ["docs/index.md", "docs/explanation/demand.md", "docs/tutorial/network.md"],
    "deploy": ["docs/how-to/deploy.md"],
    "graceful shutdown": ["docs/how-to/deploy.md"],
    "install": ["README.md", "docs/index.md"],
    "pydantic": ["docs/tutorial/typed.md"],
    "SIGTERM": ["docs/how-to/deploy.md"],
    "systemd": ["docs/how-to/deploy.md"],
    "token": ["docs/how-to/authenticate.md"],
}


@pytest.mark.parametrize("word", WORDS)
def test_word_is_on_its_pages(word: str) -> None:
    """In the prose or a heading, in small or capital letters."""
    missing = [page for page in WORDS[word] if word.lower() not in text_of(Path(page)).lower()]
    assert missing == []
