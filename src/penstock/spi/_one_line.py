"""An exception as one line of text, for lists with one line for each plugin."""


def one_line(error: BaseException) -> str:
    """Return the type and the text of `error`, with line breaks replaced by spaces."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
