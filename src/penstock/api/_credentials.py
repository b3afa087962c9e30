"""The credentials that one side of a connection shows to the other."""

from dataclasses import dataclass, field

from penstock.api._errors import UsageError


@dataclass(frozen=True, slots=True)
class Credentials:
    """A scheme, and the bytes that prove an identity by it.
    `repr` and errors do not show the bytes.

    ``Credentials("mtls")`` and ``Credentials("unix")`` say
    that the transport has proved the identity already.
    """

    scheme: str
    """``bearer``, ``basic``, ``mtls``, ``unix``, or a name that both sides agreed on."""

    data: bytes = field(default=b"", repr=False)

    @classmethod
    def bearer(cls, token: str | bytes) -> "Credentials":
        """Return a token. Raises UsageError for an empty one."""
        if not token:
            raise UsageError("the token of Credentials.bearer() is empty")
        return cls("bearer", token.encode() if isinstance(token, str) else bytes(token))

    @classmethod
    def basic(cls, user: str, password: str) -> "Credentials":
        """Return a user's name and password.
        Raises UsageError for a name with a colon, which would end it.
        """
        if not user or ":" in user:
            raise UsageError(
                "the user of Credentials.basic() is empty or has a ':', which separates it from "
                "the password"
            )
        return cls("basic", f"{user}:{password}".encode())
