"""Text that must not be published:
secrets, paths of one machine, hosts of package registries, unfinished work.
"""

import re

from tests.repo._tree import all_files, refuse, text_of

TEXT = {".py", ".md", ".toml", ".out", ".html", ".css", ".js", ".txt", ".json", ".yml", ".yaml", ""}
# Each pattern has a bracket in it, so that this file does not match itself.
FORBIDDEN = {
    "a path of one machine": re.compile(
        r"(?<![\w.])/(?:w[o]rk|r[o]ot|h[o]me|U[s]ers|t[m]p)/[a-z]?"
    ),
    "unfinished work": re.compile(
        r"\bT[O]DO\b|\bF[I]XME\b|\bX[X]X\b|\bNotImp[l]ementedError\b|\bnot imp[l]emented\b"
    ),
    "the host of a package registry": re.compile(r"\bp[y]pi\.org\b|\bpython[h]osted\.|\bnp[m]js\."),
    "a secret": re.compile(r"BEGIN [A-Z ]*PRIVATE K[E]Y|\bAK[I]A[0-9A-Z]{16}\b"),
}


def leaks_in(text: str) -> list[str]:
    """Each forbidden thing in a text, with its kind."""
    return [
        f"{kind}: {match.group()}"
        for kind, pattern in FORBIDDEN.items()
        for match in pattern.finditer(text)
    ]


def test_no_file_holds_what_must_not_be_published() -> None:
    """The text files of the repository contain nothing of FORBIDDEN."""
    texts = {path: text_of(path) for path in all_files() if path.suffix in TEXT}
    refuse(
        (f"{path}: {leak}" for path, text in texts.items() for leak in leaks_in(text)),
        "remove from these files:",
    )


def test_each_pattern_finds_an_example_of_its_kind() -> None:
    """One planted text for each kind is found, and a clean text passes. The examples are put
    together here, for the reason above.
    """
    planted = [
        "open('/ho" + "me/me/x')",
        "TO" + "DO: later",
        "from py" + "pi.org",
        "-----BEGIN RSA PRIVATE " + "KEY-----",
    ]
    assert [leak.split(":")[0] for text in planted for leak in leaks_in(text)] == list(FORBIDDEN)
    assert leaks_in("https://example.org/home/page, var/tmp/x, a route below /work") == []
