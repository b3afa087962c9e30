"""`SlowPolicy`: how a topic treats a subscriber that lags behind. It stands below `Source` and
`Topic`, because both name it.
"""

import enum


class SlowPolicy(enum.Enum):
    """The answer of a topic to a subscriber that has no demand left and no room in its buffer."""

    WAIT = "wait"
    """`publish` waits for the slowest, for `max_hold_up` seconds at most if the topic has
    that bound. Nothing is lost.
    """

    DROP_OLDEST = "drop oldest"
    """The oldest element in its buffer is dropped."""

    DROP_NEWEST = "drop newest"
    """The subscriber misses the element that is being published."""

    LATEST = "latest"
    """Its buffer holds one element, the newest of those published since it joined."""

    FAIL = "fail"
    """The subscriber gets `on_error(SlowSubscriber)`. Other subscribers are not affected."""
