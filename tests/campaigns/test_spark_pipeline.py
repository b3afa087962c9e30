"""The judge of the Spark pipeline finds each fault that is planted in its logs."""

from campaigns.spark_pipeline._judge import (
    KEYS,
    TIME,
    Copied,
    Windows,
    judge_copy,
    judge_windows,
    key_of,
)
from penstock.spi import Record

COUNT = 500


def copy(numbers: list[int]) -> dict[str, list[Record]]:
    """Return the records of a copy, in one partition, one a second."""
    return {
        "0": [
            Record(b"%d" % number, key_of(number), ((TIME, b"%d" % (number * 1_000_000)),))
            for number in numbers
        ]
    }


def test_a_right_copy_has_no_fault() -> None:
    """All keys have elements."""
    assert judge_copy(copy([*range(COUNT)]), COUNT) == Copied(COUNT, 0, 0, 0)
    assert len({key_of(number) for number in range(COUNT)}) == KEYS


def test_elements_that_are_lost_repeated_or_moved_are_counted() -> None:
    """An element that was never published counts as repeated."""
    numbers = [*range(COUNT)]
    assert judge_copy(copy(numbers[:7] + numbers[8:]), COUNT) == Copied(COUNT - 1, 1, 0, 0)
    assert judge_copy(copy([*numbers, COUNT - 1]), COUNT) == Copied(COUNT + 1, 0, 1, 0)
    assert judge_copy(copy([*numbers, COUNT]), COUNT) == Copied(COUNT + 1, 0, 1, 0)
    own = [number for number in numbers if key_of(number) == key_of(0)]
    numbers[own[0]], numbers[own[1]] = own[1], own[0]
    assert judge_copy(copy(numbers), COUNT) == Copied(COUNT, 0, 0, 1)


def test_a_window_with_a_wrong_count_is_found() -> None:
    """Too few, too many, and a count that goes back."""
    rows = [Record(b"", b"a", ((TIME, b"%d" % (second * 1_000_000)),)) for second in range(8)]

    def counts(*texts: bytes) -> list[Record]:
        return [Record(text, b"a") for text in texts]

    assert judge_windows(counts(b"0:2", b"0:5", b"5:3"), rows) == Windows(2, 0, 0)
    assert judge_windows(counts(b"0:5", b"5:2"), rows) == Windows(2, 1, 0)
    assert judge_windows(counts(b"0:5"), rows) == Windows(1, 1, 0)
    assert judge_windows(counts(b"0:5", b"5:3", b"10:1"), rows) == Windows(3, 1, 0)
    assert judge_windows(counts(b"0:5", b"0:5", b"5:3"), rows) == Windows(2, 0, 1)
