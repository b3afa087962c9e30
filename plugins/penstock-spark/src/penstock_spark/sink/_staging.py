"""One task of a query writes its rows:
it publishes them to the receiver, whose demand sets the pace.

Rules of this file:

* The task connects when it has its first row: a partition without rows costs no connection.
* Rows are pulled from Spark as far as the receiver has asked. So neither this process nor the
  connection holds more than that.
* A failure of the rows is raised itself, and not the answer of the receiver to it.
"""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, Final, NamedTuple

from penstock.api import AuthRefused, ConnectionLost, PublisherFailed, Rejected, StreamTimeout
from penstock.spi import ROWS, BatchAbort, BatchCommit, TaskAttempt
from penstock_spark._client import READ_TIMEOUT
from penstock_spark.sink._elements import check_sizes
from penstock_spark.sink._settings import EXACTLY_ONCE, SinkSettings

TRIES: Final = 3
"""The attempts of a commit: the connection may be lost before its answer comes."""


class TaskId(NamedTuple):
    """One attempt of one task."""

    query: str
    batch: int
    run: str
    partition: int
    attempt: str


class Answer(NamedTuple):
    """The elements of a task that the receiver has."""

    elements: int
    is_staged: bool


class Rows:
    """The elements of a task, as an iterable for one subscription.
    `count` and `error` tell how far it came.
    """

    def __init__(self, elements: Iterator[Sequence[bytes]], where: str) -> None:
        self._elements = elements
        self._where = where
        self.count = 0
        self.error: BaseException | None = None

    def __call__(self) -> Iterator[bytes]:
        try:
            for each in self._elements:
                check_sizes(each, self.count, self._where)
                self.count += len(each)
                yield from each
        except Exception as error:
            # boundary: the rows come from the user's query, by way of Spark, and their errors have
            # no common class. Only here is the one known that ended them: to the connection, which
            # calls this, any error is a publisher that has failed. `stage` raises it.
            self.error = error
            raise


def stage(settings: SinkSettings, task: TaskId, elements: Iterator[Sequence[bytes]]) -> Answer:
    """Publish the elements of a task to the receiver, and return its answer."""
    first = next(elements, None)
    if first is None:
        return Answer(0, is_staged=True)
    rows = Rows(chain([first], elements), f"partition {task.partition} of batch {task.batch}")
    staged = TaskAttempt(
        **task._asdict(),
        into=settings.partition or "",
        exact=settings.delivery == EXACTLY_ONCE,
        routed=bool(settings.places),
    )
    name = staged.request_name(f"{settings.stream}/stage")
    with settings.client.connect(settings.uri, publishers={ROWS: rows}) as peer:
        try:
            answer = peer.request(name, serializer="json")
        except (PublisherFailed, ConnectionLost) as error:
            if rows.error is not None:
                failure, rows.error = rows.error, None
                raise failure from None
            raise _explained(settings, error) from error
        except Rejected as error:
            raise _refused(settings, error) from error
    if answer["elements"] != rows.count:
        raise PublisherFailed(
            f"{settings.uri} says that {answer['elements']:,} elements came under "
            f"{settings.stream!r}, and {rows.count:,} were sent: "
            "Spark repeats the task"
        )
    return Answer(rows.count, answer["is_staged"])


def commit(
    settings: SinkSettings, query: str, batch: int, attempts: Sequence[tuple[int, str, int]]
) -> None:
    """Commit what the tasks of a batch have staged. Asked again after a lost connection: the
    receiver appends a batch once.
    """
    payload = BatchCommit(
        query,
        batch,
        list(attempts),
        missing_batches=settings.missing_batches,
        changed_batches=settings.changed_batches,
    ).as_json()
    for left in reversed(range(TRIES)):
        try:
            _ask(settings, "commit", payload)
        except ConnectionLost as error:
            if not left:
                raise ConnectionLost(
                    f"{settings.uri} was lost {TRIES} times while it committed batch {batch}: "
                    f"{error}. Start the query again: it repeats the batch, and what was "
                    "committed is not appended again"
                ) from error
        else:
            return


def abort(settings: SinkSettings, query: str, batch: int, run: str) -> None:
    """Tell the receiver that a batch failed, so that it need not keep it."""
    _ask(settings, "abort", BatchAbort(query, batch, run).as_json())


def _ask(settings: SinkSettings, word: str, payload: dict[str, Any]) -> None:
    with settings.client.connect(settings.uri) as peer:
        try:
            peer.request(
                f"{settings.stream}/{word}",
                payload,
                serializer="json",
                timeout=settings.client.read_timeout,
            )
        except PublisherFailed as error:
            raise _explained(settings, error) from error
        except Rejected as error:
            raise _refused(settings, error) from error
        except StreamTimeout as error:
            raise StreamTimeout(
                f"the receiver {settings.stream!r} at {settings.uri} did not answer a {word} "
                f"within {settings.client.read_timeout:g} s: a large batch takes its disk longer. "
                f"Give {READ_TIMEOUT} more, or write smaller batches, and start the query again: "
                "it repeats the batch, and what was committed is not appended again"
            ) from error


def _explained(settings: SinkSettings, error: Exception) -> Exception:
    return type(error)(f"the receiver {settings.stream!r} at {settings.uri}: {error}")


def _refused(settings: SinkSettings, error: Rejected) -> Exception:
    # Not the text of the error: it names an argument of Python, and the name
    # that the query writes under is not in question.
    if isinstance(error, AuthRefused):
        return settings.client.refused(settings.uri, error)
    return Rejected(
        f"{settings.uri} did not let this query write under {settings.stream!r}: {error}. Its "
        f"service needs penstock.receive(service, {settings.stream!r}, log), and must let this "
        "client open it"
    )
