"""Claims: an iterator gives each of its elements once, so it has one stream at a time.

Rules of this file:

* A claim is taken when a stream begins, and lasts as long as the stream keeps it. It keeps the
  iterator alive, so that no other object gets the same id meanwhile.
* A generator is closed at the end of its stream, so its claim lasts as long as the generator
  exists.
* Claims are found by identity: iterators may compare equal, and need no hash.
"""

from typing import Any, Final
from weakref import ref

from penstock.api import AlreadySubscribed


class IteratorLease:
    """The right to pull one iterator."""

    __slots__ = ("__weakref__", "_iterator")

    def __init__(self, iterator: object) -> None:
        self._iterator = iterator


_leases: Final[dict[int, ref[Any]]] = {}
"""For each claimed iterator, by its id, the object whose life is that of the claim.
Bounded by the iterators that exist.
"""


def take_lease(iterator: object, label: str, *, is_closed_at_end: bool) -> IteratorLease:
    """Return a claim on `iterator`; the stream keeps it until it has ended. Raises
    AlreadySubscribed if the iterator is claimed.
    """
    # By identity and not in a WeakKeyDictionary:
    # that compares and hashes, and an iterator need not have either.
    key = id(iterator)
    present = _leases.get(key)
    if present is not None and present() is not None:
        raise already_subscribed(label, is_closed_at_end=is_closed_at_end)
    # The claim keeps the iterator: as long as the stream has it,
    # its id cannot belong to another object.
    claim = IteratorLease(iterator)
    owner: object = claim
    if is_closed_at_end:
        try:
            ref(iterator)
        except TypeError:
            # An iterator of a class with slots, or of an extension: the claim ends with the stream.
            pass
        else:
            owner = iterator

    def forget(gone: ref[Any]) -> None:
        if _leases.get(key) is gone:  # else another object has the id by now, with another claim
            del _leases[key]

    # Weak: the table must not keep an iterator of a program alive.
    _leases[key] = ref(owner, forget)
    return claim


def already_subscribed(label: str, *, is_closed_at_end: bool) -> AlreadySubscribed:
    """Return the error for a second subscriber."""
    if is_closed_at_end:
        # The advice comes with the text: most often the call of the function is the mistake.
        fault, advice = (
            "was subscribed to before, and a generator runs once",
            "Give the generator function itself (without the call)",
        )
    else:
        fault, advice = (
            "has a subscriber, or had one, and an iterator gives each element once",
            "Give a function that makes a new one",
        )
    return AlreadySubscribed(
        f"{label} {fault}. {advice}: each subscriber then gets its own. To let subscribers share "
        "one, put share() or a Topic in between"
    )
