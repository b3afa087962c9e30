"""Caps on the size of a class: how many methods, and how many attributes an instance holds.

A cap on the lines of a file is easy to keep by moving code to another file that still needs all of the first one's state. Attributes and
methods of a class count that state itself.
"""

import ast
from pathlib import Path
from typing import NamedTuple

from tests.repo._tree import product_files, refuse, tree_of

MOST_METHODS = 25
MOST_ATTRIBUTES = 15
MOST_WITH_A_REASON = 20

# Classes with 16 to 20 attributes. The reason says what a split would cost: a figure, or the invariant that needs them together.
REASONS: dict[str, str] = {
    "Channel": "it is what all streams of a connection share; two are calls of the runtime, and an object for them has no other use",
    "Stream": "the window of bytes is two more; an object for the demand would cost each idle stream 60 bytes and each slice a call",
    "Outbox": "the path of each message and each pull reads its counts; an object for the turns of streams would cost each of them a call",
    "StreamBuffer": "as Stream, whose demand and window it has without a run of trio: an object for these would cost each slice a call",
    "SendingStream": "it sets its base's attributes too: a second constructor costs each request 0.12 us and one more file to read",
}

# Classes with more methods than the cap, each with the reason why they belong together.
MANY_METHODS: dict[str, str] = {
    "ManualSubscriber": "each method is one verb of a test, and a test calls them all on one object",
    "ReactiveSocketDialect": "Dialect alone has 25 members, which a session calls for each message: an object between would cost a call",
    "RsioDialect": "Dialect alone has 25 members, and the decoder calls the rest: an object between would cost each message a call",
    "Source": "each operator is a method, so that type checkers infer a chain of them; each is one line, and the state is that of attach",
}


class Size(NamedTuple):
    """A class and the two numbers that have a cap."""

    path: Path
    name: str
    methods: int
    attributes: int

    def __str__(self) -> str:
        return f"{self.path}: {self.name} has {self.methods} methods and {self.attributes} attributes"


def sizes_in(tree: ast.Module, path: Path) -> list[Size]:
    """The size of each class in a file."""
    classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    return [Size(path, node.name, len(_methods(node)), 0 if _is_frozen(node) else len(_attributes(node))) for node in classes]


def _methods(node: ast.ClassDef) -> set[str]:
    """The names of the methods. A property and its setter, or the overloads of a method, count once."""
    return {each.name for each in node.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)}


def _attributes(node: ast.ClassDef) -> set[str]:
    """The attributes that a method assigns on `self`, and the fields of a class whose `__init__` is generated."""
    parts = [part for part in ast.walk(node) if isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Store)]
    assigned = {part.attr for part in parts if isinstance(part.value, ast.Name) and part.value.id == "self"}
    if not node.decorator_list:
        return assigned  # an annotation in a plain class declares an attribute that a method assigns, or one of a subclass
    annotated = [each for each in node.body if isinstance(each, ast.AnnAssign) and "ClassVar" not in ast.unparse(each.annotation)]
    return assigned | {each.target.id for each in annotated if isinstance(each.target, ast.Name)}


def _is_frozen(node: ast.ClassDef) -> bool:
    """Whether instances never change. Such a record has any number of fields: Limits has one for each limit."""
    return any("frozen" in ast.unparse(decorator) for decorator in node.decorator_list)


def _allowed_attributes(name: str) -> int:
    return MOST_WITH_A_REASON if name in REASONS else MOST_ATTRIBUTES


def _sizes() -> list[Size]:
    return [size for path in product_files() for size in sizes_in(tree_of(path), path)]


def test_no_class_has_too_many_methods() -> None:
    """A class has at most MOST_METHODS methods."""
    too_many = [size for size in _sizes() if size.methods > MOST_METHODS and size.name not in MANY_METHODS]
    refuse(too_many, f"split these classes, {MOST_METHODS} methods are allowed:")


def test_no_class_has_too_many_attributes() -> None:
    """An instance has at most MOST_ATTRIBUTES attributes, or MOST_WITH_A_REASON if REASONS says why."""
    too_many = [size for size in _sizes() if size.attributes > _allowed_attributes(size.name)]
    refuse(too_many, f"split these classes, {MOST_ATTRIBUTES} attributes are allowed ({MOST_WITH_A_REASON} with a reason in REASONS):")


def test_each_reason_is_needed_and_says_something() -> None:
    """The two tables name only classes that are above the caps today, each with a sentence."""
    large = {size.name for size in _sizes() if size.attributes > MOST_ATTRIBUTES}
    busy = {size.name for size in _sizes() if size.methods > MOST_METHODS}
    refuse(sorted((set(REASONS) - large) | (set(MANY_METHODS) - busy)), "these classes need no reason any more:")
    reasons = {**REASONS, **MANY_METHODS}
    refuse((name for name, reason in reasons.items() if len(reason.split()) < 5), "these reasons say too little:")


SAMPLE = """
class Plain:
    declared_for_a_subclass: int

    def __init__(self):
        self.one, self.two = 1, 2
        self.two = other.three = 3

    @property
    def four(self): ...

    @four.setter
    def four(self, value):
        self._four: int = value


@attrs.define
class Record:
    one: int
    shared: ClassVar[int] = 1


@attrs.frozen
class Frozen:
    one: int
"""


def test_methods_and_attributes_are_counted_as_a_reader_counts_them() -> None:
    """A property counts once, an attribute counts once, class variables and attributes of other objects do not count."""
    counted = [(size.name, size.methods, size.attributes) for size in sizes_in(ast.parse(SAMPLE), Path("sample.py"))]
    assert counted == [("Plain", 2, 3), ("Record", 0, 1), ("Frozen", 0, 0)]
