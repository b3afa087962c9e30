"""A topic of a broker that speaks TLS."""

import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme
from _kafka_helpers import new_topic
from cryptography.hazmat.primitives import serialization as forms
from penstock_kafka import KafkaAccess, KafkaLog

import penstock
from campaigns._kafka import LocalKafka, why_missing
from penstock.api import LogError


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[LocalKafka, trustme.CA]]:
    """A broker with a listener for TLS, and who signed its certificate."""
    missing = why_missing()
    if missing:
        pytest.skip(missing)
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1")
    key = forms.load_pem_private_key(issued.private_key_pem.bytes(), None)
    file: Path = tmp_path_factory.mktemp("kafka-tls") / "both.pem"
    # Java reads keys in this form only.
    plain = (forms.Encoding.PEM, forms.PrivateFormat.PKCS8, forms.NoEncryption())
    chain = b"".join(each.bytes() for each in issued.cert_chain_pems)
    file.write_bytes(key.private_bytes(*plain) + chain)
    with LocalKafka(certificate=file) as kafka:
        yield kafka, authority


async def test_elements_go_through_tls(secured: tuple[LocalKafka, trustme.CA]) -> None:
    """Also fetches of several records of TLS, which come in pieces of any length."""
    kafka, authority = secured
    context = ssl.create_default_context()
    authority.configure_trust(context)
    topic = await new_topic(kafka, 1)
    elements = [bytes([number]) * size for number, size in enumerate((1, 16_385, 300_000, 900_000))]
    access = KafkaAccess(tls=context)
    async with KafkaLog(kafka.guarded_address, topic, access=access) as log:
        for each in elements:
            await log.append([each])
        assert await penstock.collect(log.source(stop="latest")) == elements
    async with KafkaLog(kafka.guarded_address, topic, access=access) as log:
        assert await penstock.collect(log.source(stop="latest")) == elements
        assert log.fetches.requests >= 1


async def test_a_certificate_that_is_not_trusted_ends_the_opening(
    secured: tuple[LocalKafka, trustme.CA],
) -> None:
    """The text has the reason of the check, and names what to give."""
    kafka, _ = secured
    access = KafkaAccess(tls=ssl.create_default_context())
    with pytest.raises(LogError, match=r"CERTIFICATE_VERIFY_FAILED.*cafile="):
        async with KafkaLog(kafka.guarded_address, "any", access=access, timeout=5):
            pass
