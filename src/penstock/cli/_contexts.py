"""Contexts: servers by a short name, each in a file of the user's folder for configuration.

Rules of this file:

* A file has a URL and the options that go with it. It has the place of a secret, and never the
  text. It is readable by its user alone.
* A file has the name of its context, so the completion of a shell lists them without this program.
* A name stands for a URL in ``prod`` and ``prod/orders``, and ``@`` for that in use. An option of
  the command line counts more than that of a context.
"""

import argparse
import os
import re
from pathlib import Path
from typing import Final

import msgspec

from penstock.api import UsageError
from penstock.cli._path import path_in, read_small

IN_USE: Final = "@"
"""The name that stands for the context in use."""

OPTIONS: Final = ("bearer", "basic", "tls_cert", "tls_key", "tls_ca", "tls_name")
"""The options that a context keeps."""

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


class Context(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A server, and the options to reach it."""

    url: str
    bearer: str | None = None
    basic: str | None = None
    tls_cert: str | None = None
    tls_key: str | None = None
    tls_ca: str | None = None
    tls_name: str | None = None


def folder() -> Path:
    """Return the folder of the contexts; it may not exist."""
    home = os.environ.get("XDG_CONFIG_HOME")
    return (Path(home) if home else Path.home() / ".config") / "penstock" / "contexts"


def names() -> list[str]:
    """Return the names of all contexts."""
    try:
        return sorted(each.name for each in folder().iterdir() if _NAME.fullmatch(each.name))
    except OSError:
        return []


def load_context(name: str) -> Context:
    """Return a context. Raises UsageError if there is none of this name, and for a file that is
    none.
    """
    path = _path_of(name)
    try:
        return msgspec.json.decode(read_small(path), type=Context)
    except OSError as error:
        why = error.strerror
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        why = str(error)
    raise UsageError(
        f"{path} is no context: {why}; remove it with penstock context remove {name}, and add the "
        "context again"
    )


def _path_of(name: str) -> Path:
    """Return the file of a context. Raises UsageError if there is none of this name."""
    if name not in names():
        there = ", ".join(names())
        raise UsageError(
            f"there is no context {name!r}; "
            + (f"there are {there}" if there else "penstock context add NAME URL makes one")
        )
    return folder() / name


def save_context(name: str, context: Context) -> None:
    """Write a context. Raises UsageError for a name that cannot be one, and if writing fails."""
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} cannot be the name of a context: give 1 to 64 letters, digits and _.-"
        )
    _write(name, msgspec.json.encode(context))


def remove_context(name: str) -> None:
    """Delete a context, also one whose file is damaged. Raises UsageError if there is none of this
    name, and if its file cannot be deleted.
    """
    path = _path_of(name)
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise UsageError(
            f"cannot remove {path}: {error.strerror}; delete it with another program"
        ) from None
    if in_use() == name:
        (folder().parent / "context-in-use").unlink(missing_ok=True)


def use_context(name: str) -> None:
    """Let ``@`` stand for a context."""
    load_context(name)
    _write("../context-in-use", name.encode())


def in_use() -> str | None:
    """Return the name that ``@`` stands for, or None."""
    try:
        return read_small(folder().parent / "context-in-use").decode() or None
    except (OSError, UnicodeDecodeError):
        return None


def _write(name: str, data: bytes) -> None:
    try:
        folder().mkdir(parents=True, exist_ok=True, mode=0o700)
        path = folder() / name
        new = path.with_name(f".{path.name}.new")
        new.unlink(missing_ok=True)
        # Made with its mode: no other user can open it in between.
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(data)
        new.replace(path)
    except OSError as error:
        raise UsageError(f"cannot write {folder() / name}: {error.strerror}") from None


# --- in a command line


def apply_contexts(options: argparse.Namespace) -> None:
    """Put URLs into the place of contexts that a command line names, with their options. Raises
    UsageError for a context that does not exist.
    """
    if not hasattr(options, "bearer"):  # it opens no connection
        return
    if hasattr(options, "to"):
        _apply(options, "to", "", may_be_path=True)
    elif hasattr(options, "origin"):
        _apply(options, "origin", "", may_be_path=True)
        _apply(options, "destination", "to_", may_be_path=True)
    else:
        _apply(options, "url", "", may_be_path=False)
        if isinstance(urls := getattr(options, "urls", None), list):
            options.urls = [_url_of(options, each, "", may_be_path=False) for each in urls]


def server_or_path(options: argparse.Namespace, text: str) -> tuple[str, argparse.Namespace]:
    """Return the URL or the path that an argument means, with the options for it alone: credentials
    of its context are for its server, and not for the other one of a command. Raises UsageError for
    a context that does not exist.
    """
    own = argparse.Namespace(**vars(options))
    return _url_of(own, text, "", may_be_path=True), own


def _apply(options: argparse.Namespace, which: str, prefix: str, *, may_be_path: bool) -> None:
    text = getattr(options, which, None)
    if isinstance(text, str):
        setattr(options, which, _url_of(options, text, prefix, may_be_path=may_be_path))


def _url_of(options: argparse.Namespace, text: str, prefix: str, *, may_be_path: bool) -> str:
    name, slash, rest = text.partition("/")
    if path_in(text) is None or not name or name == ".":
        return text
    if name == IN_USE:
        used = in_use()
        if used is None:
            raise UsageError(
                "'@' stands for the context in use, and none is: penstock context use NAME"
            )
        name = used
    elif name not in names():
        if may_be_path or not _NAME.fullmatch(name):
            return text
        load_context(name)  # says what there is
    context = load_context(name)
    given = [f"{prefix}{each}" for each in ("bearer", "basic")]
    has_credentials = any(getattr(options, each, None) is not None for each in given)
    for option in OPTIONS:
        # A token of the command line takes the place of a password of the context.
        if option in ("bearer", "basic") and has_credentials:
            continue
        where = f"{prefix}{option}" if option in ("bearer", "basic") else option
        if getattr(options, where, None) is None and (value := getattr(context, option)):
            setattr(options, where, value)
    if not slash:
        return context.url
    return f"{context.url.rstrip('/')}{separator_of(context.url)}{rest}"


def separator_of(url: str) -> str:
    """Return what stands between an address and the name of a publisher."""
    has_authority = "://" in url and not url.partition("://")[0].endswith("unix")
    return "/" if has_authority else "#"
