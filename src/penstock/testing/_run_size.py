"""Whether a decoder tells the bytes of a run: the session counts with them what a reader holds."""

from collections.abc import Sequence


def check_run_size(elements: Sequence[bytes], size: int) -> None:
    """Raise AssertionError if a decoder passed a wrong `size` with `elements` to `receive_run`."""
    exact = sum(map(len, elements))
    if size >= 0 and size != exact:
        raise AssertionError(
            f"receive_run(elements, {size}) with {len(elements)} elements of {exact} bytes in all; "
            "pass their bytes, or leave the size out"
        )
