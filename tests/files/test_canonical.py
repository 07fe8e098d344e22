"""Canonical JSON, and fingerprints that people read out."""

import hashlib
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vertimrf.errors import MessageError
from vertimrf.files.canonical import ALPHABET, canonical, fingerprint, json_digest, same_fingerprint

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=40)
@given(st.dictionaries(st.text(), JSON, max_size=5))
def test_one_content_has_one_text_in_whatever_order_it_was_built(content):
    turned = dict(reversed(content.items()))
    assert canonical(turned) == canonical(content)
    assert canonical(content).isascii()
    assert json_digest(content) == hashlib.sha256(canonical(content)).digest()


def test_the_form_that_digests_of_plans_rest_on():
    assert canonical({"b": [1, 2.5, None], "a": "ä"}) == b'{"a":"\\u00e4","b":[1,2.5,null]}'


@given(st.binary(min_size=32, max_size=32))
def test_a_fingerprint_is_140_bits_of_the_digest(value):
    text = fingerprint(value)
    assert re.fullmatch("[0-9A-HJKMNP-TV-Z]{4}(-[0-9A-HJKMNP-TV-Z]{4}){6}", text)
    number = 0
    for letter in text.replace("-", ""):
        number = 32 * number + ALPHABET.index(letter)
    assert number == int.from_bytes(value[:18], "big") >> 4


def test_people_write_it_as_they_like_and_whole():
    printed = fingerprint(hashlib.sha256(b"some plan").digest())
    for written in (
        printed,
        printed.lower(),
        printed.replace("-", " "),
        printed.replace("-", ""),
        f" {printed}\n",
        printed.replace("-", "–"),
    ):
        assert same_fingerprint(written, printed)
    for letter, mistaken in (("0", "o"), ("1", "l"), ("1", "I")):
        assert same_fingerprint(printed.replace(letter, mistaken), printed)
    # Every one of its characters counts.
    for i, letter in enumerate(printed):
        other = printed[:i] + ("0" if letter != "0" else "1") + printed[i + 1 :]
        assert letter == "-" or not same_fingerprint(other, printed)
    for part in (
        "",
        printed[:-1],
        printed[:9],
        printed + "0",
        "the fingerprint of this plan",
        printed[:-1] + "U",
    ):
        with pytest.raises(MessageError, match="whole fingerprint"):
            same_fingerprint(part, printed)
