"""The comparison of ids: equal sets are equal, others are not, and what is sent is a point that hides its digest."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from tests.releases.encrypted_counts.test_encrypted_counts import (
    RECORDS,
    SECRET,
    party_of,
    plan_of,
    records_of,
    tables_of,
)
from tests.roles import compare_ids
from vertimrf.errors import MessageError
from vertimrf.files import container
from vertimrf.keys import KeyRing
from vertimrf.party.party import Party
from vertimrf.releases.encrypted_counts.comparison import (
    KINDS,
    PRIME,
    A,
    hidden,
    opened,
    pack,
    point_of,
)

# Order of the points of Curve25519 without those of order 8 (RFC 7748).
ORDER = 2**252 + 27742317777372353535851937790883648493
NUMBERS = [bytes([n]) * 32 for n in (1, 2)]


def times(number, u):
    """The coordinate u of a multiple of a point, by Montgomery's ladder; None for the neutral element."""
    x, z, x2, z2 = 1, 0, u, 1
    for bit in f"{number:b}":
        if bit == "1":
            x, z, x2, z2 = x2, z2, x, z
        # (x, z) is doubled, and the sum of both replaces (x2, z2); their difference is u.
        p, q = (x * x2 - z * z2) ** 2 % PRIME, (x * z2 - z * x2) ** 2 * u % PRIME
        x, z = (x * x - z * z) ** 2 % PRIME, 4 * x * z * (x * x + A * x * z + z * z) % PRIME
        x2, z2 = p, q
        if bit == "1":
            x, z, x2, z2 = x2, z2, x, z
    return x * pow(z, -1, PRIME) % PRIME if z else None


def test_a_digest_is_a_point_of_the_curve_and_not_of_its_twist():
    """Else whoever sees a multiple would know on which of the two the digest's point is, which rules out half of all guesses."""
    for n in range(40):
        u = int.from_bytes(point_of(bytes([n])), "little")
        assert times(8 * ORDER, u) is None
        assert times(ORDER + 1, u) is not None
    # A point of the twist has no such order.
    twist = next(
        u for u in range(2, 99) if pow(u**3 + A * u**2 + u, PRIME // 2, PRIME) == PRIME - 1
    )
    assert times(8 * ORDER, twist) is not None
    assert times(1, twist) == twist


def test_two_numbers_hide_a_point_in_any_order_and_differ_for_others():
    one, other = map(point_of, (b"one", b"other"))
    first, second = NUMBERS
    assert hidden(second, hidden(first, one)) == hidden(first, hidden(second, one))
    assert hidden(second, hidden(first, one)) != hidden(first, hidden(second, other))
    seen = {one, other, *(hidden(n, p) for n in NUMBERS for p in (one, other))}
    assert len(seen) == 6
    # As the oracle multiplies: X25519 takes the multiple of 8 that the bits say.
    number = int.from_bytes(first, "little") & ~7 & ~(1 << 255) | 1 << 254
    multiple = times(number, int.from_bytes(one, "little"))
    assert hidden(first, one) == multiple.to_bytes(32, "little")


@pytest.mark.parametrize("other", range(3))
def test_one_person_more_is_noticed_by_all_who_compare_with_that_party(other):
    """Whether his record fits or not. With the same people nobody notices anything."""
    plan, tables = plan_of(), tables_of("usual")
    blank = [table.only(np.arange(RECORDS) != 17) for table in tables]
    for people in (tables, blank):
        compare_ids([party_of(plan, name) for name in plan.party_names], people)
    tables[other] = records_of(tables[other], slice(1, None))
    parties = [party_of(plan, name) for name in plan.party_names]
    with pytest.raises(MessageError, match=r"do not hold the same ids.*told to nobody"):
        compare_ids(parties, tables)
    sides = [party.comparison(table) for party, table in zip(parties, tables, strict=True)]
    ids, noticed = [side.ids() for side in sides], 0
    for i, j in itertools.permutations(range(3), 2):
        name, its = plan.party_names[i], plan.party_names[j]
        again = sides[j].ids_again({name: ids[i][its]})[name]
        try:
            sides[i]._steps.compare(j, sides[i].number(its), ids[j][name], again)
        except MessageError:
            noticed += 1
            assert other in (i, j)
    assert noticed == 4


def test_what_was_sent_back_cannot_be_sent_back_again():
    """A party that guesses wrong learns so, and would have the other go on: it returns what it was sent."""
    plan, tables = plan_of(), tables_of("usual")
    one, two = (
        party_of(plan, name).comparison(t) for name, t in zip(("one", "two"), tables, strict=False)
    )
    guess = pack(plan, 0, 1, hidden(NUMBERS[0], point_of(b"a wrong guess")), again=False)
    sent = two.ids_again({"one": guess})["one"]
    hashed = opened(plan, 1, 0, sent, again=True)
    header, _ = container.unpack(one.ids_again({"two": two.ids()["one"]})["two"], KINDS[1], "it")
    echo = container.pack(KINDS[1], header, {"point": np.frombuffer(hashed, np.uint8)})
    with pytest.raises(MessageError, match="do not hold the same ids"):
        two._steps.compare(0, two.number("one"), guess, echo)
    # Who knows the product, because its guess is right, is believed.
    known = hidden(NUMBERS[0], opened(plan, 1, 0, two.ids()["one"], again=False))
    mine = hidden(NUMBERS[0], point_of(two._steps.people))
    two._steps.compare(
        0,
        two.number("one"),
        pack(plan, 0, 1, mine, again=False),
        pack(plan, 0, 1, known, again=True),
    )


def test_a_number_is_of_its_party_the_other_one_the_plan_and_the_ids():
    """Nobody else can compute it, and with the folder's key it is the same again."""
    ring = KeyRing.new(("one", "two", "three"))
    plan, table = replace(plan_of(), public_keys=ring.public), tables_of("usual")

    def number(name, other, people=slice(None), plan=plan):
        party = Party(plan, name, SECRET, key=ring.parties[name])
        place = plan.party_names.index(name)
        return party.comparison(records_of(table[place], people)).number(other)

    first = number("one", "two")
    assert number("one", "two") == first
    others = [
        number("two", "one"),
        number("one", "three"),
        number("one", "two", slice(1, None)),
        number("one", "two", plan=replace(plan, nonce="another")),
    ]
    assert len({first, *others}) == 5


def test_files_of_points_are_checked():
    plan, point = plan_of(), hidden(NUMBERS[0], point_of(b""))
    good = pack(plan, 0, 1, point, again=False)
    assert opened(plan, 0, 1, good, again=False) == point
    assert len({len(pack(plan_of(), 0, 1, hidden(n, point), again=True)) for n in NUMBERS}) == 1
    header, _ = container.unpack(good, KINDS[0], "it")

    def with_point(numbers):
        return container.pack(KINDS[0], header, {"point": np.array(numbers, np.uint8)})

    for data, sentence in (
        (pack(plan_of(nonce="other"), 0, 1, point, again=False), "for another plan"),
        (pack(plan, 0, 2, point, again=False), "for another party"),
        (pack(plan, 2, 1, point, again=False), "another party's"),
        (pack(plan, 0, 1, point, again=True), "not a hidden ids"),
        (container.pack(KINDS[0], header, {}), "lacks its point"),
        (with_point([1] * 31), "lacks its point"),
        (with_point([0] * 32), "hides nothing"),
        (with_point([1] + [0] * 31), "hides nothing"),
    ):
        with pytest.raises(MessageError, match=sentence):
            opened(plan, 0, 1, data, again=False)
