"""The text of an exception of another program, whose `__str__` may raise."""


def text_of(error: BaseException) -> str:
    """Return the text of an exception, also if its `__str__` raises."""
    try:
        return str(error)
    except Exception:
        # boundary: the __str__ of a foreign exception.
        # Its stream must still end, and a log must not raise.
        return f"{type(error).__name__}, whose __str__ raised"
