"""`Source.pipe` refuses an object that is not an operator, and says what to write."""

import pytest

from penstock.api import UsageError
from penstock.streams import from_iterable, single


def test_an_operator_gets_the_source_and_its_result_is_returned() -> None:
    """Any function from a source to a source is an operator."""
    source, other = single(1), from_iterable([2])
    given = []
    assert source.pipe(lambda source: given.append(source) or other) is other
    assert given == [source]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (
            5,
            r"^pipe\(\) was given 5, which is not an operator; to apply a function to each element, write map\(int\)$",
        ),
        (
            str,
            r"^pipe\(\) was given str, which is not an operator: it returned '<source single>' and not a source; to apply .* map\(str\)$",
        ),
    ],
)
def test_an_argument_that_is_no_operator_is_refused(wrong, message) -> None:
    """The error says how to apply a function to each element."""
    with pytest.raises(UsageError, match=message):
        single(1).pipe(wrong)


async def coroutine_function(source):
    """Return a source, but only when awaited."""
    return source


def test_a_coroutine_function_is_no_operator() -> None:
    """It is refused when the pipe is built.
    Its coroutine is closed, because a warning about it would point elsewhere.
    """
    with pytest.raises(
        UsageError, match=r"coroutine_function, which is not an operator: it returned .*coroutine"
    ):
        single(1).pipe(coroutine_function)


@pytest.mark.parametrize("function", [lambda n: n + 1, lambda n: n.upper()])
def test_a_function_of_an_element_gets_a_note(function) -> None:
    """The function raises because it was called with a source; the note says so."""
    with pytest.raises((TypeError, AttributeError)) as caught:
        single(1).pipe(function)
    assert caught.value.__notes__ == [
        (
            "pipe() calls an operator with a source; to apply a function to each element, write "
            f"map({function.__qualname__})"
        )
    ]
