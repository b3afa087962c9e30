"""An exception as one line: a list of plugins has one for each, whatever their exceptions say."""


def one_line(error: BaseException) -> str:
    """Return what it is and what it says."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
