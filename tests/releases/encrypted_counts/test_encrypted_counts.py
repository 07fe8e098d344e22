"""A party's steps of encrypted counts: exact counts and two noises, the same rows everywhere, and nothing else in any file."""

import collections
import math
from dataclasses import replace
from functools import cache, partial
from secrets import randbelow

import numpy as np
import pytest
from builders import dealt, records_of, schema_of
from oracles import chi_square, crossed

from benchmarks.plain_counts import without_encryption
from tests.planning import plan_with
from tests.roles import assert_same, compare_ids
from vertimrf.errors import MessageError, PlanError
from vertimrf.files import container
from vertimrf.keys import KeyRing
from vertimrf.message import Message
from vertimrf.options import RunOptions
from vertimrf.party.party import Party
from vertimrf.party.secret import Secret, derive
from vertimrf.privacy.noise import FixedNoise, SystemNoise
from vertimrf.releases.encrypted_counts import packing
from vertimrf.releases.encrypted_counts.encoding import Steps, noisy_count, opened
from vertimrf.releases.encrypted_counts.lattice import PrivateKey as CountingKey
from vertimrf.releases.encrypted_counts.lattice import as_bytes, residues, weighed
from vertimrf.releases.encrypted_counts.packing import PRIMES, N
from vertimrf.server.server import Server
from vertimrf.trial import run_protocol

SCHEMA = schema_of(one=(4, 2, 3), two=(5, 2), three=(3,))
RECORDS = 300
KNOWN = {"epsilon": 4.0, "delta": 1e-4, "encoder": "encrypted", "tau": 50}
SECRET = Secret(bytes(range(32)))


def key_material(plan, secret=SECRET):
    """What a party derives from the secret for each purpose."""
    return lambda purpose: derive(secret, plan.digest(), purpose=purpose)


@cache
def key_of(name):
    """A party's key, the same in all steps."""
    return CountingKey.new()


def plan_of(records=RECORDS, **options):
    return plan_with(SCHEMA, **(KNOWN | {"expected_records": records} | options))


def party_of(plan, name, noise=None):
    return Party(plan, name, SECRET, noise, counting_key=key_of(name))


def compared(plan, tables, first):
    """Let the first party compare its ids with the others'."""
    compare_ids([first, *(party_of(plan, name) for name in plan.party_names[1:])], tables)


def codes_of(records=RECORDS):
    rng = np.random.default_rng(3)
    first = rng.integers(0, 2, records)
    return np.array([rng.integers(0, size, records) // (1 + first) for size in SCHEMA.sizes])


def tables_of(how):
    """Tables of the same people, which differ from the usual ones in a person or altogether."""
    codes = codes_of()
    if how == "other values":
        codes = np.array(SCHEMA.sizes)[:, None] - 1 - 0 * codes
    tables = dealt(SCHEMA, codes)
    one_blank = np.arange(RECORDS) != 17
    return [table.only(one_blank) for table in tables] if how == "a blank" else tables


TABLES = ("usual", "a blank", "other values")


def steps_of(plan, party, table, blanks=0):
    absent = ((0, 0), (0, len(table.blanks)))
    values = np.pad(table.codes.astype(np.int32), absent, constant_values=-1)
    values[:, :blanks] = -1
    name, digests = plan.party_names[party], np.append(table.digests, table.blanks)
    return Steps(plan, plan.sketch, party, key_material(plan), digests, values, key_of(name))


def noiseless(exact):
    class Nothing(FixedNoise):
        def gaussian(self, values, sigma):
            return values

    return Nothing(0)


def exact_table(one, other, rows):
    """Counts of the second's values (rows) and the first's (columns); a contrast where there is one counter."""
    sizes = tuple(2 if count == 1 else count for count in rows)
    there = (one >= 0) & (other >= 0)
    table = crossed((other[there], one[there]), sizes)
    for axis, count in enumerate(rows):
        if count == 1:
            table = table.take([0], axis) - table.take([1], axis)
    return table


def test_without_noise_the_tables_are_the_exact_counts_of_rows_without_blanks():
    plan, tables = plan_of(), tables_of("usual")
    # The second party's rows stand in another order; some of the first's are blank.
    order = np.random.default_rng(0).permutation(RECORDS)
    shuffled = records_of(tables[1], order)
    parties = [
        steps_of(plan, 0, tables[0], blanks=30),
        steps_of(plan, 1, shuffled),
        steps_of(plan, 2, tables[2]),
    ]
    rows = parties[0].rows()
    answers = {j: parties[j].answer(0, [rows], noiseless) for j in (1, 2)}
    opened = parties[0].tables(answers, noiseless)
    owners, pairs = plan.group_parties, plan.counted_pairs(0)
    assert {owners[g] for g, _ in pairs} == {1, 2}
    in_order = [parties[0].values, tables[1].codes.astype(np.int32), parties[2].values]
    share = plan.sketch.sampled(noisy_count(plan, key_material(plan), RECORDS), plan.count_sigma)
    taken = tables[0].digests < (2**64 - 1 if share == 1 else int(share * 2**64))
    for (g, own), table in zip(pairs, opened, strict=True):
        first = plan.groups_of(owners[g])[0]
        theirs, mine = in_order[owners[g]][g - first][taken], in_order[0][own][taken]
        assert (table == exact_table(mine, theirs, table.shape)).all()


def test_rows_in_pieces_give_the_same_tables_and_all_must_be_there(monkeypatch):
    monkeypatch.setattr(packing, "PIECE_BYTES", 1)
    plan, tables = plan_of(), tables_of("usual")
    one, two, three = (steps_of(plan, i, tables[i]) for i in range(3))
    pieces = [one.rows(piece) for piece in range(2)]
    answers = {j: step.answer(0, iter(pieces), noiseless) for j, step in ((1, two), (2, three))}
    with without_encryption():
        plain = [one.rows(piece) for piece in range(2)]
        wanted = {j: step.answer(0, plain, noiseless) for j, step in ((1, two), (2, three))}
        wanted = one.tables(wanted, noiseless)
    assert (flat(one.tables(answers, noiseless)) == flat(wanted)).all()
    for wrong, sentence in (
        (pieces[:1], "has 2 pieces of the rows of 'one'"),
        ([*pieces, pieces[1]], "has 2 pieces of the rows of 'one'"),
        (pieces[::-1], "is another piece than 1"),
        ([pieces[0], pieces[0]], "is another piece than 2"),
    ):
        with pytest.raises(MessageError, match=sentence):
            two.answer(0, wrong, noiseless)


@pytest.mark.parametrize("how", TABLES)
def test_both_parties_noise_is_in_the_tables(how):
    """What a coalition lacks: the packer the selector's noise, everybody else the packer's. Both have one law, whatever the tables.

    Each table's noise is that of its own numbers. The variance of what the server gets is 2 sigma^2: within 6 standard errors.
    Correlation within 5, chi-square at 1e-6.
    """
    plan = plan_of(tau=10**6)
    sketch = plan.sketch
    sigmas = np.concatenate(
        [
            np.full(sketch.rows(g) * sketch.rows(own), sketch.noise(g, own))
            for g, own in plan.counted_pairs(0)
        ]
    )
    assert len(set(sigmas)) == 2
    sigmas = np.tile(sigmas, 150)
    parties = [steps_of(plan, i, table) for i, table in enumerate(tables_of(how))]
    opened, published = [], []
    with without_encryption():
        rows = parties[0].rows()
        exact = flat(
            parties[0].tables(
                {j: parties[j].answer(0, [rows], noiseless) for j in (1, 2)}, noiseless
            )
        )
        for _ in range(150):
            answers = {j: parties[j].answer(0, [rows], lambda _: SystemNoise()) for j in (1, 2)}
            opened.append(flat(parties[0].tables(answers, noiseless)))
            published.append(flat(parties[0].tables(answers, lambda _: SystemNoise())))
    selectors, both = (np.concatenate(seen) - np.tile(exact, 150) for seen in (opened, published))
    for sigma in set(sigmas):
        one, two = (noise[sigmas == sigma] for noise in (selectors, both))
        for noise, variance in ((one, sigma**2), (two, 2 * sigma**2)):
            assert abs(noise.mean()) < 6 * math.sqrt(variance / noise.size)
            assert abs(np.square(noise).mean() / variance - 1) < 6 * math.sqrt(2 / noise.size)
        values = np.arange(-math.ceil(12 * sigma), math.ceil(12 * sigma) + 1)
        law = np.exp(-(values**2) / (2 * sigma**2))
        for noise in (one, two - one):
            assert chi_square((noise[:, None] == values).sum(0), law / law.sum()) > 1e-6
        correlation = np.mean(one * (two - one)) / sigma**2
        assert abs(correlation) < 5 / math.sqrt(two.size)


def flat(tables):
    return np.concatenate([table.ravel() for table in tables])


def test_a_simulator_writes_what_each_party_receives():
    """It has the plan and noisy counts alone: rows without values under another key, and fresh encryptions of noisy counts.

    Its files agree with those of all tables in everything but ciphertexts, and the parties take them.
    """
    plan, rng, seen = plan_of(), np.random.default_rng(1), set()
    for how in TABLES:
        one, two, _ = (steps_of(plan, i, table) for i, table in enumerate(tables_of(how)))
        rows = one.rows()
        seen.add((outside(rows), outside(two.answer(0, [rows], lambda _: SystemNoise()))))
    layout = one._layout(0)
    blank = replace(one, values=np.full_like(one.values, -1), private=CountingKey.new())
    rows = blank.rows()
    two.answer(0, [rows], noiseless)
    noisy = [rng.integers(0, RECORDS, (sum(two._counters(j)), layout.counters)) for j in (1, 2)]
    files = {}
    for j, counters in enumerate(noisy, 1):
        vectors = np.array([[rng.integers(0, q, N) for q in PRIMES] for _ in counters], np.uint32)
        # The packer's secrets times the vectors, the counts, and flooding, as the packer could draw them itself.
        masks = weighed(key_of("one").secrets(layout.slots), vectors).transpose(1, 0, 2)
        plaintexts = [one for row in layout.pack(0 * counters) for one in row]
        moved = [one for row in _packed(layout, counters) for one in row]
        hidden = [
            layout.scale * (plain + more)
            + layout.largest_error
            + randbelow(1 << layout.flooding_bits)
            for plain, more in zip(plaintexts, moved, strict=True)
        ]
        drawn = (masks + residues(hidden).reshape(masks.shape)) % np.array(PRIMES)
        header = one._header(0) | {"party": j}
        arrays = {"vectors": as_bytes(vectors), "sums": as_bytes(drawn.astype(np.uint32))}
        files[j] = container.pack("encrypted answers", header, arrays)
    assert seen == {(outside(rows), outside(files[1]))}
    wanted = [layout.tables(counters, two._counters(j)) for j, counters in enumerate(noisy, 1)]
    assert (
        flat(one.tables(files, noiseless)) == np.concatenate([flat(tables) for tables in wanted])
    ).all()


def _packed(layout, counters):
    """Counters in the plaintexts of their slots."""
    return [
        [
            sum(c << (layout.width * k) for k, c in enumerate(row[first : first + layout.per_slot]))
            for first in range(0, len(row), layout.per_slot)
        ]
        for row in counters.tolist()
    ]


def outside(file):
    """All of a file but its numbers."""
    kind, header, arrays = container.peek(file, "it")
    return len(file), kind, str(header), str([(n, a.shape, a.dtype) for n, a in arrays.items()])


def test_noise_depends_on_the_rows_and_on_the_table():
    """Equal files and tables give equal noise; where a row differs, noise is independent."""
    ring = KeyRing.new(SCHEMA.party_names)
    plan, tables = replace(plan_of(), public_keys=ring.public), tables_of("usual")
    party = Party(plan, "two", SECRET, key=ring.parties["two"])
    records = party._checked(tables[1])
    drawn, again, other = (
        party._noise(records, "answer to one", exact).gaussian(np.zeros(50, np.int64), 50.0)
        for exact in (b"a" * 32, b"a" * 32, b"b" * 32)
    )
    assert (drawn == again).all()
    assert (drawn != other).sum() > 40
    seen = []

    def watched(exact):
        seen.append(exact)
        return SystemNoise()

    with without_encryption():
        for blanks in (0, 1):
            rows = steps_of(plan, 0, tables[0], blanks).rows()
            steps_of(plan, 1, tables[1]).answer(0, [rows], watched)
            steps_of(plan, 1, tables[1], blanks=2).answer(0, [rows], watched)
    assert len(set(seen)) == 4


def test_a_table_without_its_answers_makes_no_message():
    plan, tables = plan_of(), tables_of("usual")
    one = party_of(plan, "one")
    for early in (one.run, one.rows, lambda table: one.answers(table, {})):
        with pytest.raises(PlanError, match="compare those of 'one' with the others' first"):
            early(tables[0])
    with pytest.raises(MessageError, match="The ids of 'two' are missing"):
        one.comparison(tables[0]).compare({}, {})
    compared(plan, tables, one)
    with pytest.raises(MessageError, match="The answers of 'two' are missing"):
        one.run(tables[0])
    keyless = Party(plan, "one", SECRET)
    compared(plan, tables, keyless)
    with pytest.raises(MessageError, match="without it"):
        keyless.rows(tables[0])
    other = plan_with(SCHEMA, expected_records=RECORDS, delta=1e-4)
    with pytest.raises(PlanError, match="only encrypted counts are exchanged"):
        Party(other, "one", SECRET).rows(tables[0])


def test_files_of_others_are_refused():
    plan, tables = plan_of(), tables_of("usual")
    two = steps_of(plan, 1, tables[1])
    with without_encryption():
        rows = steps_of(plan, 0, tables[0]).rows()
        answer = two.answer(0, [rows], noiseless)
        for data, sentence in (
            (steps_of(replace(plan, nonce="other"), 0, tables[0]).rows(), "for another plan"),
            (steps_of(plan, 2, tables[2]).rows(), "another party's"),
            (answer, "not a encrypted rows"),
            (rows[:-1], "truncated or altered"),
        ):
            with pytest.raises(MessageError, match=sentence):
                two.answer(0, [data], noiseless)
        with pytest.raises(MessageError, match="another party's, or for another"):
            steps_of(plan, 0, tables[0]).tables({1: answer, 2: answer}, noiseless)
        # What the third party has answered to the second one's rows, which the second one passes on.
        passed = steps_of(plan, 2, tables[2]).answer(1, [two.rows()], noiseless)
        with pytest.raises(MessageError, match="another party's, or for another"):
            steps_of(plan, 0, tables[0]).tables({1: answer, 2: passed}, noiseless)
    header, arrays = container.unpack(rows, "encrypted rows", "rows")
    for name in ("rows", "seed"):
        others = {other: array for other, array in arrays.items() if other != name}
        with pytest.raises(MessageError, match=f"lacks its {name}"):
            two.answer(0, [container.pack("encrypted rows", header, others)], noiseless)


@pytest.fixture(scope="module")
def sent():
    """Rows and the second party's answers, encrypted."""
    plan, tables = plan_of(), tables_of("usual")
    parties = [steps_of(plan, i, tables[i]) for i in range(2)]
    rows = parties[0].rows()
    return plan, parties, rows, parties[1].answer(0, [rows], noiseless)


def with_a_zero(numbers):
    """The last of the polynomials is 0."""
    return np.concatenate([numbers[:-1], 0 * numbers[-1:]])


@pytest.mark.parametrize(
    "change, sentence",
    [
        (lambda numbers: numbers[:-1], "numbers, and this plan has"),
        (lambda numbers: np.repeat(numbers, 2, axis=0), "numbers, and this plan has"),
        (lambda numbers: np.repeat(numbers, 2, axis=1), "numbers, and this plan has"),
        (lambda numbers: numbers[..., 1:], "lacks its"),
        (lambda numbers: numbers | np.uint8(255), "that is no ciphertext"),
        (with_a_zero, "that is no ciphertext"),
    ],
    ids=["too few", "too many", "too many of a row", "no words", "large", "zero"],
)
def test_wrong_ciphertexts_are_refused_when_the_file_is_opened(
    sent,
    change,
    sentence,
):
    """Whoever opens it: a run folder that takes it, or a party that works on it."""
    plan, (one, two), *files = sent
    for sender, (data, name) in enumerate(zip(files, ("rows", "vectors"), strict=True)):
        kind, header, arrays = container.peek(data, "it")
        takes = partial(opened, plan, sender, 1 - sender)
        takes(data)
        wrong = container.pack(kind, header, arrays | {name: change(arrays[name])})
        works = (
            partial(one.tables, {1: wrong, 2: wrong}, noiseless)
            if sender
            else partial(two.answer, 0, [wrong], noiseless)
        )
        for opens in (partial(takes, wrong), works):
            with pytest.raises(MessageError, match=f"The file of {kind}.*{sentence}"):
                opens()


def test_the_same_counts_in_other_ciphertexts_get_no_other_noise(
    sent,
):
    """A second release of one table is the first, also if both parties have lost their records."""
    plan, (one, two), rows, _ = sent
    three = steps_of(plan, 2, tables_of("usual")[2]).answer(0, [rows], noiseless)
    seen = []

    def watched(exact):
        seen.append(exact)
        return noiseless(exact)

    answers = [two.answer(0, [rows], noiseless) for _ in range(2)]
    assert answers[0] != answers[1]
    answers.append(two.answer(0, [rows], lambda _: SystemNoise()))
    for answer in answers:
        one.tables({1: answer, 2: three}, watched)
    assert seen[0] == seen[2] != seen[4]
    assert seen[1] == seen[3] == seen[5]


def test_a_record_that_does_not_fit_keeps_its_row():
    """Whether it fits changes its own row to a blank, and no other."""
    plan, tables = plan_of(), tables_of("usual")
    whole, kept = tables[0], np.arange(RECORDS) != 17
    part = whole.only(kept)
    assert part.blanks.tolist() == [int(whole.digests[17])]
    party = party_of(plan, "one", FixedNoise(1))
    full, less = (party._steps(party._checked(table)) for table in (whole, part))
    # Bins follow from noise, so rows are compared by whether they are blank.
    blank = np.flatnonzero((full.codes >= 0).all(0) != (less.codes >= 0).all(0))
    assert len(blank) == 1
    assert full.people == less.people


@pytest.mark.parametrize(
    "planned, records, epsilon", [(2000, 7000, 20.0), (7000, 7000, 0.5)], ids=["sample", "noise"]
)
def test_estimates_are_unbiased_and_their_errors_as_stated(planned, records, epsilon):
    """Of three times as many records as planned, a sample takes part and counts are scaled. Else the error is each table's noise.

    The cells of a repetition share a sample, so that they count as eight. The bounds are five standard errors.
    """
    plan = plan_of(records=planned, epsilon=epsilon)
    codes = codes_of(records)
    residuals = collections.defaultdict(list)
    for seed in range(12):
        # Real digests take all of 64 bits.
        digests = np.random.default_rng(seed).integers(0, 2**64, records, np.uint64)
        tables = [replace(table, digests=digests) for table in dealt(SCHEMA, codes)]
        with without_encryption():
            estimates = _estimates(replace(plan, nonce=str(seed)), tables)
        for m in estimates.crossing:
            if m.contrasts:
                continue
            a, b = m.attributes
            true = crossed((m.bins[0][codes[a]], m.bins[1][codes[b]]), m.counts.shape)
            z = ((m.counts - true) / m.errors).ravel()
            residuals["all"].append(z)
            residuals[m.counts.size].append(z)
    for numbers, some in residuals.items():
        z = np.concatenate(some)
        independent = min(z.size, 8 * 12) if planned < records else z.size
        assert abs(z.mean()) < 5 / math.sqrt(independent), numbers
        assert abs(np.square(z).mean() - 1) < 5 * math.sqrt(2 / independent), numbers


def test_a_record_beyond_the_capacity_moves_no_other_one(monkeypatch):
    """With the noisy count as it is, a record that is removed takes nobody with it and lets nobody in.

    3,000 records in 300 rows or so: were the share of the exact count, the next record in order would come in for one in ten.
    """
    monkeypatch.setattr("vertimrf.releases.encrypted_counts.encoding.noisy_count", lambda *_: 3000)
    plan, codes = plan_of(), codes_of(3000)
    digests = np.random.default_rng(0).integers(0, 2**64, 3000, np.uint64)
    table = replace(dealt(SCHEMA, codes)[0], digests=digests)

    def counted(records):
        codes = steps_of(plan, 0, records).codes
        return np.array([np.bincount(group + 1, minlength=9)[1:] for group in codes])

    whole, moved = counted(table), []
    assert 0 < whole[0].sum() < plan.sketch.capacity
    for record in range(0, 3000, 30):
        fewer = counted(records_of(table, np.arange(3000) != record))
        moved.append(np.abs(whole - fewer).sum(axis=1).max())
    assert set(moved) == {0, 1}


def _estimates(plan, tables):
    """What the server reads of a whole exchange."""
    names = plan.party_names
    parties = [party_of(plan, name, FixedNoise(n)) for n, name in enumerate(names)]
    compare_ids(parties, tables)
    messages = []
    for n, name in enumerate(names):
        rows = {name: [parties[n].rows(tables[n])]} if n < 2 else {}
        answers = {names[j]: parties[j].answers(tables[j], rows)[name] for j in range(n + 1, 3)}
        messages.append(parties[n].run(tables[n], answers))
    return Server(plan).read(messages)


def test_a_whole_run_with_real_encryption():
    plan = plan_of()
    trial = run_protocol(plan, tables_of("usual"), RunOptions(rows=100, seed=1))
    assert trial.table.num_rows == 100
    assert trial.ledger.private
    assert trial.ledger.epsilon <= 4.0
    assert trial.ledger.colluding_epsilon <= 4.0


def test_a_message_is_read_back_and_held_to_its_plan():
    plan, tables = plan_of(), tables_of("usual")
    with without_encryption():
        one, *others = (party_of(plan, name) for name in plan.party_names)
        compare_ids([one, *others], tables)
        rows = one.rows(tables[0])
        answers = {
            party._name: party.answers(table, {"one": [rows]})["one"]
            for party, table in zip(others, tables[1:], strict=True)
        }
        message = one.run(tables[0], answers)
    first, *others = message.tables
    assert_same(Message.from_bytes(message.to_bytes(plan), plan), message)
    for wrong, said in (
        (message.tables[:-1], "lacks table"),
        ((first + 10**6, *others), "table 0 has counts"),
    ):
        with pytest.raises(MessageError, match=said):
            Message.from_bytes(replace(message, tables=wrong).to_bytes(plan), plan)


def test_counts_with_fixed_noise_are_not_private():
    """Of a deployment that somebody has left in its testing mode: the label goes, whatever the encoder."""
    plan, tables = plan_of(), tables_of("usual")
    with without_encryption():
        for noise in (None, FixedNoise(1)):
            three = party_of(plan, "three", noise)
            compare_ids([party_of(plan, name) for name in ("one", "two")] + [three], tables)
            message = three.run(tables[2])
            assert message.private is (noise is None)
            assert Message.from_bytes(message.to_bytes(plan), plan).private is (noise is None)


def test_the_count_is_one_for_all_parties_and_another_under_another_secret():
    plan = plan_of()
    assert noisy_count(plan, key_material(plan), RECORDS) == noisy_count(
        plan, key_material(plan), RECORDS
    )
    others = {
        noisy_count(plan, key_material(plan, Secret(bytes([i] * 32))), RECORDS) for i in range(8)
    }
    assert len(others) > 1
