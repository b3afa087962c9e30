"""What writers have staged: bounded, found by its names, and forgotten
when no commit will name it.
"""

import attrs
import pytest

from penstock.api import LimitExceeded, PublicError
from penstock.runtime.service._staging import (
    ATTEMPT_BYTES,
    ELEMENT_BYTES,
    Attempt,
    BatchId,
    Staging,
    writer_of,
)
from penstock.spi import UnixCredentials

BATCH = BatchId("", "q", 7)


def attempt(
    name: str = "a",
    *,
    batch: BatchId = BATCH,
    run: str = "r",
    partition: int = 0,
    began: float = 0.0,
) -> Attempt:
    return Attempt(batch, run, partition, name, "0", began)


def staging_of(most: int) -> Staging:
    return Staging(most, 60, lambda _: None)


def put(staging: Staging, staged: Attempt, *elements: bytes) -> Attempt:
    """Stage a whole attempt."""
    staging.begin(staged)
    staging.add(staged, elements)
    staged.is_whole = True
    return staged


def test_attempts_are_found_by_partition_name_and_count() -> None:
    """In the order of the partitions, and not of the names."""
    staging = staging_of(10_000)
    second = put(staging, attempt("b", partition=1), b"2", b"3")
    first = put(staging, attempt("a"), b"1")
    assert staging.find(BATCH, [(1, "b", 2), (0, "a", 1)]) == [first, second]


@pytest.mark.parametrize("wrong", [(0, "b", 1), (1, "a", 1), (0, "a", 2)])
def test_a_missing_attempt_is_told_with_what_to_do(wrong: tuple[int, str, int]) -> None:
    """Another name, another partition, another count."""
    staging = staging_of(10_000)
    put(staging, attempt("a"), b"1")
    with pytest.raises(PublicError, match="Start the query again"):
        staging.find(BATCH, [wrong])


def test_a_part_of_an_attempt_is_not_found() -> None:
    """It has the count, and its end has not come."""
    staging = staging_of(10_000)
    part = attempt("a")
    staging.begin(part)
    staging.add(part, [b"1"])
    with pytest.raises(PublicError, match="is not staged here"):
        staging.find(BATCH, [(0, "a", 1)])


def test_elements_beyond_the_bound_are_refused() -> None:
    """To the byte; the attempt keeps what it had, until it is dropped."""
    staging = staging_of(ATTEMPT_BYTES + 2 * (ELEMENT_BYTES + 3))
    full = put(staging, attempt(), b"abc", b"def")
    with pytest.raises(LimitExceeded, match="maxElementsPerTrigger"):
        staging.add(full, [b""])
    staging.drop(full)
    assert staging.size == 0


def test_an_attempt_without_elements_counts() -> None:
    """Otherwise empty attempts would not be bounded."""
    staging = staging_of(2 * ATTEMPT_BYTES)
    put(staging, attempt("a"))
    put(staging, attempt("b"))
    with pytest.raises(LimitExceeded):
        staging.begin(attempt("c"))
    assert staging.size == 2 * ATTEMPT_BYTES


def test_an_earlier_run_of_a_batch_makes_room() -> None:
    """Its process was killed, or the batch would not be repeated. Attempts of this run stay."""
    staging = staging_of(3 * ATTEMPT_BYTES)
    old = put(staging, attempt("old", run="first"))
    mine = put(staging, attempt("mine", run="second"))
    put(staging, attempt("third", run="second"))
    put(staging, attempt("fourth", run="second"))
    assert staging.find(BATCH, [(0, "mine", 0)]) == [mine]
    with pytest.raises(PublicError, match="was dropped"):
        staging.add(old, [b"late"])


def test_an_old_attempt_makes_room_when_it_is_needed() -> None:
    """An old attempt is kept until its room is needed."""
    staging = staging_of(2 * ATTEMPT_BYTES)
    other = BatchId("", "another", 1)
    put(staging, attempt("old", batch=other, began=0.0))
    put(staging, attempt("young", began=59.0))
    assert staging.find(other, [(0, "old", 0)])
    put(staging, attempt("new", began=60.0))
    with pytest.raises(PublicError, match="is not staged here"):
        staging.find(other, [(0, "old", 0)])


def test_a_commit_forgets_the_batch_and_earlier_ones_of_its_query() -> None:
    """Later batches and other queries stay."""
    staging = staging_of(100_000)
    for batch in (BatchId("", "q", 6), BATCH, BatchId("", "q", 8), BatchId("", "other", 1)):
        put(staging, attempt(batch=batch), b"x")
    staging.commit(BATCH)
    assert staging.size == 2 * (ATTEMPT_BYTES + ELEMENT_BYTES + 1)
    assert staging.find(BatchId("", "q", 8), [(0, "a", 1)])


def test_an_abort_forgets_one_run() -> None:
    """A run that has begun meanwhile keeps what it has staged."""
    staging = staging_of(100_000)
    put(staging, attempt("a", run="first"), b"x")
    kept = put(staging, attempt("b", run="second"), b"y")
    staging.abort(BATCH, "first")
    assert staging.find(BATCH, [(0, "b", 1)]) == [kept]
    assert staging.size == kept.size


def test_an_attempt_that_is_being_committed_stays() -> None:
    """Nobody else gets its room, and an abort does not drop it."""
    staging = staging_of(2 * ATTEMPT_BYTES)
    held = put(staging, attempt("held", run="first"))
    put(staging, attempt("free", run="first"))
    with staging.committing([held]):
        put(staging, attempt("mine", run="second", began=1_000.0))
        with pytest.raises(LimitExceeded):
            staging.begin(attempt("more", run="second", began=1_000.0))
        staging.abort(BATCH, "first")
        assert staging.find(BATCH, [(0, "held", 0)]) == [held]
    staging.begin(attempt("more", run="second", began=1_000.0))
    with pytest.raises(PublicError, match="is not staged here"):
        staging.find(BATCH, [(0, "held", 0)])


def test_a_writer_takes_no_room_from_a_commit() -> None:
    """Although the other one holds more than its share."""
    staging = staging_of(2 * ATTEMPT_BYTES)
    theirs = [put(staging, attempt(str(number))) for number in range(2)]
    with staging.committing(theirs), pytest.raises(LimitExceeded):
        staging.begin(attempt(batch=BatchId("another", "q", 7)))
    assert staging.size == 2 * ATTEMPT_BYTES


def test_what_was_staged_before_a_restart_is_within_the_bound() -> None:
    """The oldest goes if the bound is lower now."""
    gone: list[Attempt] = []
    staging = Staging(2 * ATTEMPT_BYTES, 60, gone.append)
    restored = [attempt(str(number)) for number in range(3)]
    for each in restored:
        each.is_whole = True
        staging.restore(each)
    assert gone == restored[:1]
    assert staging.find(BATCH, [(0, "1", 0), (0, "2", 0)]) == restored[1:]


def test_a_principal_has_the_same_text_after_a_restart() -> None:
    """Otherwise a batch that is repeated would be appended twice."""

    @attrs.frozen
    class User:
        name: str

    assert writer_of(None) == ""
    assert writer_of("ada") == "fdee430d40bd57de"
    task, driver = (UnixCredentials(pid=pid, uid=1000, gid=5) for pid in (1, 2))
    assert writer_of(task) == writer_of(driver)
    assert writer_of(User("ada")) == writer_of(User("ada")) != writer_of(User("bob"))
    with pytest.raises(PublicError, match="return a str"):
        writer_of(object())


def test_no_two_batches_have_one_transaction() -> None:
    """A peer chooses the name of its query, and not its digest."""
    digits = "1234567890123456"
    ids = [
        BatchId(writer, query, batch).transaction
        for writer in ("", digits)
        for query in ("q", "q/7", f"q/7@{digits}", f"q/7/{digits}")
        for batch in (7, int(digits))
    ]
    assert len(set(ids)) == len(ids)


def test_a_writer_within_its_share_takes_the_room_of_the_one_that_holds_most() -> None:
    """The oldest attempt goes, and only what is missing. A writer beyond its share is refused."""
    of_ada, of_bob = BatchId("ada", "q", 1), BatchId("bob", "q", 1)
    staging = Staging(4 * ATTEMPT_BYTES, 100.0, lambda _: None)
    for name in "1234":
        staging.begin(attempt(name, batch=of_ada))
    for name in "12":
        staging.begin(attempt(name, batch=of_bob))
        assert staging.size == 4 * ATTEMPT_BYTES
    with pytest.raises(LimitExceeded):
        staging.begin(attempt("3", batch=of_bob))
    assert [each.name for each in staging._attempts] == ["3", "4", "1", "2"]
    with pytest.raises(LimitExceeded):
        staging.begin(attempt("5", batch=of_ada))


def test_no_writer_gives_more_room_than_the_others_hold() -> None:
    """Of two writers beyond their shares each gives what it holds more than the other."""
    of_ada, of_bob, of_eve = (BatchId(name, "q", 1) for name in ("ada", "bob", "eve"))
    staging = Staging(9 * ATTEMPT_BYTES, 100.0, lambda _: None)
    for name in "12345":
        staging.begin(attempt(name, batch=of_ada))
    for name in "1234":
        staging.begin(attempt(name, batch=of_bob))
    large = attempt("1", batch=of_eve)
    staging.begin(large)
    staging.add(large, [bytes(2 * ATTEMPT_BYTES - ELEMENT_BYTES)])
    assert [(each.of.writer, each.name) for each in staging._attempts] == [
        *(("ada", name) for name in "345"),
        *(("bob", name) for name in "234"),
        ("eve", "1"),
    ]
    assert staging.size == 9 * ATTEMPT_BYTES


def test_an_attempt_that_gave_its_room_away_says_so() -> None:
    """Its writer writes the batch again."""
    staging = Staging(2 * ATTEMPT_BYTES, 100.0, lambda _: None)
    first = attempt("1", batch=BatchId("ada", "q", 1))
    staging.begin(first)
    staging.begin(attempt("2", batch=BatchId("ada", "q", 1)))
    staging.begin(attempt("1", batch=BatchId("bob", "q", 1)))
    with pytest.raises(PublicError, match="another writer needed its share"):
        staging.add(first, [b"x"])
