"""Readers check a plain value, and say where one does not fit."""

from typing import NoReturn

import pytest

from penstock.spi import DoesNotFit, TypeCodeFailed
from penstock.spi._plain_readers import (
    Reader,
    converting_reader,
    enum_reader,
    exact_reader,
    list_reader,
    mapping_reader,
    read_anything,
    read_float,
    read_integer_key,
    record_reader,
    tuple_reader,
    union_reader,
)


def test_the_path_leads_from_the_element_to_the_value() -> None:
    """Keys of a mapping are the peer's text, and are not shown."""
    read = record_reader(
        dict, [("rows", True, list_reader(mapping_reader(None, read_float)))], "Table"
    )
    with pytest.raises(DoesNotFit) as refused:
        read({"rows": [{}, {"secret": "x"}]})
    assert (refused.value.path, refused.value.reason) == (
        ".rows[1]{}",
        "expected a number, got a text",
    )
    assert str(refused.value) == "rows[1]{}: expected a number, got a text"


def test_true_is_no_integer_and_an_integer_is_a_number() -> None:
    """As in JSON, and not as in Python."""
    assert read_float(1) == 1.0
    with pytest.raises(DoesNotFit, match="expected an integer, got true or false"):
        exact_reader(int)(True)
    with pytest.raises(DoesNotFit, match="expected a number, got true or false"):
        read_float(True)


def test_a_constructor_that_refuses_is_named_without_its_text() -> None:
    """Its text may repeat the peer's value."""

    def make(**given: object) -> None:
        raise ValueError(f"secret {given}")

    with pytest.raises(DoesNotFit, match=r"^Quote refused the values \(ValueError\)$"):
        record_reader(make, [], "Quote")({})


def raise_key_error(*_: object) -> NoReturn:
    raise KeyError("secret")


class Unhashable:
    __hash__ = raise_key_error  # type: ignore[assignment]  # a fault in the user's class


@pytest.mark.parametrize(
    ("title", "read"),
    [
        ("Quote", record_reader(raise_key_error, [], "Quote")),
        ("Quote", converting_reader(raise_key_error, ValueError, "Quote")),
        ("Color", enum_reader(raise_key_error, frozenset((dict,)), "Color")),
    ],
    ids=["constructor", "library", "enum"],
)
def test_an_exception_of_another_kind_is_a_fault_of_the_class(title: str, read: Reader) -> None:
    """And not of the peer, nor of the serializer. The text of the exception is in the cause
    only: it may repeat the peer's value.
    """
    with pytest.raises(TypeCodeFailed) as failed:
        read({})
    assert str(failed.value) == (
        f"the code of {title} raised KeyError when an object of it was made: its constructor, "
        "__post_init__ or a validator, and not the serializer. Correct it there; to refuse a "
        "value raise ValueError"
    )
    assert isinstance(failed.value.__cause__, KeyError)


def test_an_element_of_a_set_whose_hash_raises_is_a_fault_of_its_class() -> None:
    """Only a TypeError says that it has no hash."""
    with pytest.raises(TypeCodeFailed, match="the code of an element of a set raised KeyError"):
        list_reader(lambda _: Unhashable(), set)([1])


def test_places_of_a_tuple_may_be_missing_at_its_end() -> None:
    """Where they have a default."""
    read = tuple_reader(tuple, [exact_reader(int), exact_reader(str)], 1)
    assert (read([1]), read([1, "a"])) == ((1,), (1, "a"))
    with pytest.raises(DoesNotFit, match="of length 1 to 2, got 0"):
        read([])


def test_the_type_of_the_value_selects_the_member_of_a_union() -> None:
    """And nothing is tried."""
    read = union_reader({str: exact_reader(str), list: list_reader(read_anything)}, "str or list")
    assert (read("a"), read([1])) == ("a", [1])
    with pytest.raises(DoesNotFit, match="expected str or list, got null"):
        read(None)


@pytest.mark.parametrize("key", ["", "01", "+1", "1.0", "1_0", " 1", "٣", "9" * 41])
def test_an_integer_key_has_one_form(key: str) -> None:
    """Without zeros in front."""
    assert read_integer_key("-10") == -10
    with pytest.raises(DoesNotFit):
        read_integer_key(key)
