"""The text for a TLS handshake that failed: why, and what to do."""

import ssl
from typing import Final

# OpenSSL's reasons for bytes that are not the beginning of a handshake.
_REFUSED_VERSION: Final = "TLSV1_ALERT_PROTOCOL_VERSION"
_NOT_TLS: Final = frozenset(
    {
        "WRONG_VERSION_NUMBER",
        "HTTP_REQUEST",
        "HTTPS_PROXY_REQUEST",
        "RECORD_LAYER_FAILURE",
        "UNKNOWN_PROTOCOL",
    }
)

_NAME: Final = "Tls(server_name=...), on the command line --tls-name"

# By OpenSSL's code of verification.
_ADVICE: Final = {
    9: "It is not valid yet: compare the clocks of both sides",
    10: "The server needs a new one",
    62: f"Connect by a name that is in it, or say which one is meant: {_NAME}",
    64: f"Connect by an address that is in it, or say which name is meant: {_NAME}",
}
_UNKNOWN_ISSUER: Final = (
    "If you trust its issuer, say so: Tls(authorities='ca.pem'), on the command line --tls-ca "
    "ca.pem"
)


def tls_failure(error: BaseException) -> str:
    """Return why a TLS handshake failed, and what to do."""
    # trio wraps the system's error.
    cause = error if isinstance(error, OSError) else error.__cause__
    if isinstance(cause, ssl.SSLCertVerificationError):
        advice = _ADVICE.get(cause.verify_code, _UNKNOWN_ISSUER)
        return f"its certificate cannot be verified: {cause.verify_message.rstrip('.')}. {advice}"
    if isinstance(cause, ssl.SSLError):
        reason = getattr(cause, "reason", None)
        if reason == _REFUSED_VERSION:
            return (
                "it does not accept TLS 1.2 or newer, or does not speak TLS; is it a server "
                "without TLS (tcp://)?"
            )
        return (
            "it does not speak TLS; is it a server without TLS (tcp://)?"
            if reason in _NOT_TLS
            else str(reason or cause)
        )
    return str(cause or error) or type(error).__name__
