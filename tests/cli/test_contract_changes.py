"""What breaks for the clients of a service: each rule of the table in the documentation."""

import time
from typing import Any

import pytest

from penstock.cli._contract import contract_of
from penstock.cli._contract_changes import Break, breaks_of

INT, FLOAT, STR, NULL = ({"type": each} for each in ("integer", "number", "string", "null"))
UUID = {"type": "string", "format": "uuid"}

NAMED = {"name": "a", "parameters": [], "summary": ""}


def record(required: str = "", *, title: str = "R", **properties: Any) -> dict[str, Any]:
    """Return a record; `required` has the names of the fields that are needed."""
    return {
        "type": "object",
        "title": title,
        "properties": properties,
        "required": required.split(),
    }


def publisher(schema: Any = None, **more: Any) -> dict[str, Any]:
    return {
        **NAMED,
        "kind": "publisher",
        "serializer": "json",
        "elements": "",
        "elements_schema": schema,
        **more,
    }


def request(payload: Any, **more: Any) -> dict[str, Any]:
    return {
        **NAMED,
        "kind": "request",
        "answer": "",
        "payload": "X",
        "payload_schema": payload,
        "needs_payload": True,
        **more,
    }


def compare(old: list[dict[str, Any]], new: list[dict[str, Any]]) -> list[Break]:
    return breaks_of(contract_of(old), contract_of(new))


def rules(old: dict[str, Any], new: dict[str, Any]) -> set[str]:
    return {each.rule for each in compare([old], [new])}


NARROWER: list[tuple[str, Any, Any]] = [
    ("an integer and a number", INT, FLOAT),
    ("a text of one form and any text", UUID, STR),
    ("a value of an enum and a text", {"enum": ["a"]}, STR),
    ("fewer values of an enum", {"enum": ["a"]}, {"enum": ["a", "b"]}),
    ("a type and a union with it", INT, {"anyOf": [INT, NULL]}),
    ("fewer members of a union", {"anyOf": [INT, NULL]}, {"anyOf": [INT, STR, NULL]}),
    ("a type and any value", INT, {}),
    ("a smaller bound and a larger one", {**INT, "maximum": 5}, {**INT, "maximum": 6}),
    ("a bound and none", {**INT, "minimum": 5}, INT),
    ("a pattern and none", {**STR, "pattern": "a"}, STR),
    ("fewer parts of a list", {"type": "array", "items": INT}, {"type": "array", "items": FLOAT}),
    (
        "a list of fixed length and any list",
        {"type": "array", "prefixItems": [INT, INT], "minItems": 2},
        {"type": "array", "items": INT},
    ),
    (
        "a longer list and one whose end may be missing",
        {"type": "array", "prefixItems": [INT, INT], "minItems": 2},
        {"type": "array", "prefixItems": [INT, INT], "minItems": 1},
    ),
    ("a needed field and one that may be missing", record("x", x=INT), record(x=INT)),
    ("a field more and a field fewer", record("x y", x=INT, y=INT), record("x", x=INT)),
    ("a narrower field", record("x", x=INT), record("x", x=FLOAT)),
    (
        "an object with fields and any object",
        record("x", x=INT),
        {"type": "object", "additionalProperties": FLOAT},
    ),
    (
        "narrower keys of an object",
        {"type": "object", "propertyNames": {"format": "uuid"}},
        {"type": "object"},
    ),
]
"""Pairs of a type and a wider one."""


@pytest.mark.parametrize(("narrow", "wide"), [each[1:] for each in NARROWER])
def test_elements_may_become_narrower(narrow: Any, wide: Any) -> None:
    """A client reads what it read before, and skips new fields."""
    assert rules(publisher(wide), publisher(narrow)) == set()


@pytest.mark.parametrize(("narrow", "wide"), [each[1:] for each in NARROWER])
def test_wider_elements_break_their_readers(narrow: Any, wide: Any) -> None:
    """A value that a client has never seen, or a field that is missing."""
    assert rules(publisher(narrow), publisher(wide)) == {"value"}


@pytest.mark.parametrize(("narrow", "wide"), [each[1:] for each in NARROWER])
def test_an_answer_is_judged_as_elements_are(narrow: Any, wide: Any) -> None:
    """The service writes it."""
    # Without a serializer a text travels as text, and any other type as JSON.
    old, new = (
        {**request(None), "serializer": "json", "answer_schema": each} for each in (narrow, wide)
    )
    assert (rules(old, new), rules(new, old)) == ({"value"}, set())


@pytest.mark.parametrize(("narrow", "wide"), [each[1:] for each in NARROWER])
def test_a_payload_may_become_wider_and_not_narrower(narrow: Any, wide: Any) -> None:
    """The other direction: clients write it. `| None` only says that it may be left out."""
    assert rules(request(narrow), request(wide)) == set()
    if wide != {"anyOf": [INT, NULL]}:
        assert rules(request(wide), request(narrow)) == {"payload"}


CLOSED = {**record("x", x=INT), "additionalProperties": False}


def test_a_class_that_takes_no_other_fields_breaks_with_a_new_one() -> None:
    """Readers of an open class skip it."""
    more = record("x y", x=INT, y=INT)
    assert rules(publisher(CLOSED), publisher(more)) == {"value"}
    assert rules(request(more), request(CLOSED)) == {"payload"}
    assert rules(publisher(CLOSED), publisher(CLOSED)) == set()


def tagged(title: str, **fields: Any) -> dict[str, Any]:
    return record("type " + " ".join(fields), title=title, type={"enum": [title]}, **fields)


def union(*members: Any) -> dict[str, Any]:
    return {"anyOf": list(members), "discriminator": {"propertyName": "type"}}


def test_a_member_of_a_union_is_compared_with_the_one_of_its_tag() -> None:
    """The sentence is about the field, and not about the whole union."""
    old = union(tagged("A", x=INT), tagged("B", y=INT))
    new = union(tagged("A", x=STR), tagged("B", y=INT))
    [found] = compare([publisher(old)], [publisher(new)])
    assert found.what == "the field 'x' of its elements may be str, and int is read"
    [found] = compare([publisher(old)], [publisher(union(*old["anyOf"], tagged("C")))])
    assert found.what == "its elements may be C, and A or B is read"


def parameter(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": "int", "in": "query", "required": False, **more}


LIST = {"type": "array", "items": STR}


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ([], [parameter("n")], set()),
        ([], [parameter("n", required=True)], {"parameter-required"}),
        ([parameter("n")], [], {"parameter-removed"}),
        ([parameter("n")], [parameter("n", required=True)], {"parameter-required"}),
        ([parameter("n", required=True)], [parameter("n")], set()),
        ([parameter("n")], [parameter("n", type="str")], set()),
        ([parameter("n")], [parameter("n", type="float")], set()),
        ([parameter("n", type="str")], [parameter("n")], {"parameter"}),
        ([parameter("n", type="str")], [parameter("n", schema=LIST)], set()),
        ([parameter("n", schema=LIST)], [parameter("n", type="str")], {"parameter"}),
        (
            [parameter("n", schema={"enum": ["a", "b"]})],
            [parameter("n", schema={"enum": ["a"]})],
            {"parameter"},
        ),
        (
            [parameter("n", schema={"enum": ["a"]})],
            [parameter("n", schema={"anyOf": [{"enum": ["a", "b"]}, NULL]})],
            set(),
        ),
    ],
)
def test_parameters(old: list[Any], new: list[Any], expected: set[str]) -> None:
    """They are texts that clients send."""
    assert rules(publisher(parameters=old), publisher(parameters=new)) == expected


def test_a_parameter_of_the_name_may_get_another_name_and_no_narrower_type() -> None:
    """A client sends its place only."""
    old = publisher(name="a/{x}", parameters=[parameter("x", type="str") | {"in": "name"}])
    same = publisher(name="a/{y}", parameters=[parameter("y", type="str") | {"in": "name"}])
    narrow = publisher(name="a/{y}", parameters=[parameter("y") | {"in": "name"}])
    assert (rules(old, same), rules(old, narrow)) == (set(), {"parameter"})


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (publisher(INT), publisher(INT), set()),
        (publisher(INT), publisher(INT, name="b"), {"removed"}),
        (publisher(INT), {**request(INT), "answer_schema": INT}, {"kind"}),
        (publisher(INT), publisher(INT, serializer="msgpack"), {"serializer"}),
        (publisher(INT, positions=True), publisher(INT), {"positions"}),
        (publisher(INT), publisher(INT, positions=True), set()),
        (publisher(INT), publisher(INT, channel="X"), {"channel"}),
        (publisher(INT, channel="X"), publisher(INT), {"channel"}),
        (publisher(INT), publisher(None), {"value"}),
        (publisher(None), publisher(INT), set()),
        (request(INT), request(INT, needs_payload=False), set()),
        (request(INT, needs_payload=False), request(INT), {"payload-required"}),
    ],
)
def test_offers(old: dict[str, Any], new: dict[str, Any], expected: set[str]) -> None:
    """A publisher or a request that is gone, or is another thing."""
    assert rules(old, new) == expected


def test_a_payload_that_comes_or_goes() -> None:
    """A service refuses a payload that it does not take."""
    without = {key: each for key, each in request(INT).items() if "payload" not in key}
    assert rules(request(INT), without) == {"payload-removed"}
    assert rules(without, request(INT)) == {"payload-required"}
    assert rules(without, request(INT, needs_payload=False)) == set()


def tree(kind: Any, *, title: str = "Tree") -> dict[str, Any]:
    reference = {"$ref": f"#/$defs/{title}"}
    whole = record("value kid", title=title, value=kind, kid={"anyOf": [reference, NULL]})
    return {**reference, "$defs": {title: whole}}


def test_a_class_that_contains_itself_is_compared_once() -> None:
    """It has one sentence for each field that breaks."""
    assert compare([publisher(tree(INT))], [publisher(tree(INT, title="Other"))]) == []
    [found] = compare([publisher(tree(INT))], [publisher(tree(STR))])
    assert found.what == "the field 'value' of its elements may be str, and int is read"


def test_unions_inside_unions_take_no_time_without_bound() -> None:
    """Each pair of types is compared once. Tried one by one, 20 levels would be 4^20 pairs."""

    def deep(end: Any) -> Any:
        definitions = {
            "A0": record("end", title="A0", end=end),
            "B0": record("b", title="B0", b=INT),
        }
        for level in range(1, 20):
            inner = {"anyOf": [{"$ref": f"#/$defs/{each}{level - 1}"} for each in "AB"]}
            for each in "AB":
                title = f"{each}{level}"
                definitions[title] = record("inner", title=title, inner=inner)
        return {"anyOf": [{"$ref": f"#/$defs/{each}19"} for each in "AB"], "$defs": definitions}

    began = time.process_time()
    assert compare([publisher(deep(INT))], [publisher(deep(STR))])
    assert time.process_time() - began < 5
