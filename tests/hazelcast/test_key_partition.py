"""The owner of a key, against what a client of the product computes. Its values stand here, so that no client is needed."""

from __future__ import annotations

import pytest

from quarterdeck.backend.hazelcast.key_partition import BadKey, KeyType, partition_of_key

KNOWN: list[tuple[str, KeyType, int, int]] = [
    ("", "string", 11, 3827),
    ("a", "string", 73, 3655),
    ("ab", "string", 132, 4914),
    ("abc", "string", 13, 2454),
    ("abcd", "string", 189, 4022),
    ("abcde", "string", 208, 4395),
    ("order-4711", "string", 250, 660),
    ("Ünïcödé", "string", 188, 2664),
    ("日本語", "string", 88, 325),
    ("🙂", "string", 133, 2460),
    ("user:1@shop", "string", 196, 4614),
    ("x" * 100, "string", 28, 4807),
    ("0", "int", 11, 3827),
    ("1", "int", 31, 2653),
    ("-1", "int", 164, 3692),
    ("5", "int", 169, 55),
    ("2147483647", "int", 129, 3989),
    ("-2147483648", "int", 249, 2075),
    ("123456", "int", 137, 1972),
    ("0", "long", 109, 4003),
    ("5", "long", 25, 1439),
    ("-1", "long", 231, 1362),
    ("9223372036854775807", "long", 21, 4818),
    ("-9223372036854775808", "long", 32, 4070),
    ("123456789012", "long", 181, 4368),
]
"""Key, type, and its partition of 271 and of 5009, from hazelcast-python-client 5.7.0."""


@pytest.mark.parametrize(("key", "key_type", "of_271", "of_5009"), KNOWN)
def test_a_key_lies_where_the_product_puts_it(key: str, key_type: KeyType, of_271: int, of_5009: int) -> None:
    assert (partition_of_key(key, key_type, 271), partition_of_key(key, key_type, 5009)) == (of_271, of_5009)


@pytest.mark.parametrize(
    ("key", "key_type"), [("five", "int"), ("", "long"), ("2147483648", "int"), (str(2**63), "long")]
)
def test_what_is_no_key_of_its_type_is_said_so(key: str, key_type: KeyType) -> None:
    with pytest.raises(BadKey, match=r"no whole number|does not fit"):
        partition_of_key(key, key_type, 271)
