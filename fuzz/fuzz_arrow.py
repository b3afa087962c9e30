"""Elements of Apache Arrow: a record batch in Arrow's IPC format, read by pyarrow."""

from support import fuzz, instrumented

with instrumented():
    import penstock_arrow._batch_bytes  # noqa: F401  # imported with the first element, if not here
    import pyarrow as pa
    from penstock_arrow import ArrowSerializer

    from penstock.api import ProtocolError

ARROW = ArrowSerializer()


def TestOneInput(data: bytes) -> None:
    """A batch that is taken can be looked at: each of its values becomes an object."""
    try:
        batch = ARROW.loads(data)
    except ProtocolError:
        return
    assert isinstance(batch, pa.RecordBatch)
    assert batch.num_rows <= 8 * len(data)
    for column in batch.columns:
        for value in column.slice(0, 20):
            try:
                value.as_py()
            except (ValueError, OverflowError, pa.ArrowException):
                # A time before the year 1, an unknown time zone, a text that is not UTF-8: the
                # value is in its bounds, and Python has no object for it.
                continue


def _seed(**columns: "pa.Array") -> bytes:
    return ARROW.dumps(pa.RecordBatch.from_pydict(columns))


SEEDS = (
    _seed(a=pa.array([1, 2, None], pa.int64())),
    _seed(a=pa.array([True, False]), b=pa.array(["x", None])),
    _seed(a=pa.array(["a", "b", "a"]).dictionary_encode()),
    _seed(a=pa.array([[1], [], None]), b=pa.array([{"c": 1}] * 3)),
    _seed(a=pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int32()))),
    _seed(a=pa.array(["a long text in a view " * 2], pa.string_view()), b=pa.nulls(1)),
    _seed(a=pa.array([b"x"], pa.large_binary()), b=pa.array([1], pa.timestamp("us", "UTC"))),
    _seed(),
)

if __name__ == "__main__":
    fuzz(TestOneInput, SEEDS)
