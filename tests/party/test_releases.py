"""A plan is released for once: whatever is killed, repeated, raced, altered or lost, no second noise gets out."""

import os
from dataclasses import replace

import numpy as np
import pytest
from builders import dealt, records_of, schema_of

from benchmarks.attacks.double_release import RELEASE, child, killed_at, steps
from vertimrf import Attribute, PrivateKey
from vertimrf.errors import PrivacyError
from vertimrf.files import atomic
from vertimrf.files.state import STATE
from vertimrf.party.records import InMemory
from vertimrf.party.releases import Releases, table_digest
from vertimrf.tables.table import Table


def fresh():
    return os.urandom(1000)


def again():
    raise AssertionError("made again although there is a record")


@pytest.fixture
def releases(tmp_path):
    return Releases(tmp_path / "releases" / "hospital")


def test_the_same_release_gives_the_same_bytes_and_makes_them_once(releases):
    first = releases.once(RELEASE, fresh)
    assert len(first) == 1000
    assert releases.once(RELEASE, again) == first
    assert Releases(releases.folder).once(RELEASE, again) == first


def test_other_plans_and_parties_have_records_of_their_own(releases):
    others = [replace(RELEASE, plan=b"q" * 32), replace(RELEASE, party=0)]
    given = [releases.once(release, fresh) for release in (RELEASE, *others)]
    assert len(set(given)) == 3


def test_killed_at_any_step_the_next_run_releases_what_was_released_or_nothing_was(tmp_path):
    count = steps(tmp_path)
    assert count >= 12
    recorded = 0
    for folder, out, code in killed_at(tmp_path, count):
        assert code == -9
        sent = out.read_bytes() if out.exists() else None
        on_record = list(folder.glob("message-*"))
        recorded += bool(on_record)
        # Nothing is out that is not on record.
        assert sent is None or on_record
        later = Releases(folder).once(RELEASE, again if on_record else fresh)
        assert sent in (None, later)
        assert not list(folder.glob(".*")), "drafts of a killed run are left"
    assert 0 < recorded < count


def test_the_entry_of_a_record_is_on_the_disk_before_its_bytes_are_given(releases, monkeypatch):
    """A link that only memory holds is lost with the machine's power, after its bytes may have been sent."""
    entries = []
    sync = atomic.sync
    monkeypatch.setattr(
        atomic,
        "sync",
        lambda at, **more: (entries.append(sorted(os.listdir(at))), sync(at, **more)),
    )
    releases.once(RELEASE, fresh)
    assert any(RELEASE.name in listed for listed in entries)


def test_the_digest_of_a_table_without_records_is_nobodys_to_guess():
    """On a stolen disk a record must not tell that a party had no records."""
    empty = InMemory(
        Table((Attribute.integer("a", 2),), np.empty(0, np.uint64), np.empty((1, 0), np.uint16))
    )
    keys, plans = [PrivateKey.new("hospital") for _ in range(2)], (b"p" * 32, b"q" * 32)
    one, again = ({table_digest(empty, key, plan) for key in keys for plan in plans} for _ in "12")
    assert one == again
    assert len(one) == 4


def test_drafts_of_killed_processes_go_when_the_release_is_given_again(releases):
    kept = releases.once(RELEASE, fresh)
    draft = releases.folder / f".0123abcd.{RELEASE.name}"
    draft.write_bytes(b"other noise")
    assert releases.given(RELEASE.plan, RELEASE.party) == kept
    assert not draft.exists()


def test_of_several_processes_at_once_one_alone_releases(tmp_path):
    outs = [tmp_path / f"{i}.message" for i in range(4)]
    runs = [child(tmp_path / "releases", out, pause=0.3) for out in outs]
    assert [process.wait() for process in runs] == [0] * len(runs)
    assert len({out.read_bytes() for out in outs}) == 1
    assert len(os.listdir(tmp_path / "releases")) == 1


def test_another_table_is_refused_with_the_reason(releases):
    kept = releases.once(RELEASE, fresh)
    with pytest.raises(
        PrivacyError, match=r"from another table.*average the noise away.*new plan.*add up"
    ):
        releases.once(replace(RELEASE, table=b"u" * 32), again)
    assert releases.once(RELEASE, again) == kept


@pytest.mark.parametrize("cut", [0, 1, 100, 800, 1199])
def test_a_damaged_record_is_refused_with_the_reason_and_never_replaced(releases, cut):
    releases.once(RELEASE, fresh)
    path = releases.folder / RELEASE.name
    content = path.read_bytes()
    for damaged in (content[:cut], content[:cut] + bytes([content[cut] ^ 1]) + content[cut + 1 :]):
        path.write_bytes(damaged)
        with pytest.raises(PrivacyError, match=r"damaged.*average the noise away"):
            releases.once(RELEASE, again)
        assert path.read_bytes() == damaged
    path.write_bytes(content)
    releases.once(RELEASE, again)


def test_a_record_under_another_ones_name_is_refused(releases):
    releases.once(RELEASE, fresh)
    other = replace(RELEASE, plan=b"q" * 32)
    (releases.folder / RELEASE.name).rename(releases.folder / other.name)
    with pytest.raises(PrivacyError, match="damaged"):
        releases.once(other, again)


def test_a_dangling_record_counts_as_one(releases):
    releases.folder.mkdir(parents=True)
    (releases.folder / RELEASE.name).symlink_to("a disk that is not there")
    with pytest.raises(PrivacyError, match=r"cannot be read.*average the noise away"):
        releases.once(RELEASE, again)


@pytest.mark.parametrize("planted", ["written by others", "another user's", "a link"])
def test_a_record_that_others_may_have_put_there_is_refused(releases, planted, somebody_else):
    """Else who shares the machine decides what a party sends, or that it sends again."""
    kept = releases.once(RELEASE, fresh)
    path = releases.folder / RELEASE.name
    if planted == "written by others":
        path.chmod(0o620)
    elif planted == "a link":
        path.rename(releases.folder / "other")
        path.symlink_to("other")
    else:
        somebody_else(path)
    for give in (
        lambda: releases.once(RELEASE, again),
        lambda: releases.given(RELEASE.plan, RELEASE.party),
    ):
        with pytest.raises(PrivacyError, match=r"not yours alone|cannot be read"):
            give()
    if planted == "written by others":
        path.chmod(0o600)
        assert releases.once(RELEASE, again) == kept


def test_nothing_is_released_from_a_folder_that_others_can_write_to(releases):
    """There they could take the record away, so that a second release is made."""
    kept = releases.once(RELEASE, fresh)
    releases.folder.chmod(0o770)
    other = replace(RELEASE, plan=b"q" * 32)
    for give in (
        lambda: releases.once(RELEASE, again),
        lambda: releases.once(other, again),
        lambda: releases.given(RELEASE.plan, RELEASE.party),
    ):
        with pytest.raises(PrivacyError, match=rf"not yours alone.*chmod go-w .*{STATE}"):
            give()
    releases.folder.chmod(0o700)
    assert releases.once(RELEASE, again) == kept


def test_nothing_is_made_where_no_record_can_be_kept(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(PrivacyError, match="nothing is released"):
        Releases(tmp_path / "file" / "releases").once(RELEASE, again)
    with pytest.raises(PrivacyError, match="nothing is released"):
        Releases(tmp_path / "file").once(RELEASE, again)
    folder = tmp_path / "releases"
    folder.mkdir()
    # The superuser may write anywhere: say what everybody else would hear.
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(PrivacyError, match=r"Permission denied.*writable"):
        Releases(folder).once(RELEASE, again)


@pytest.mark.parametrize("broken", ["fsync", "link"])
def test_a_full_disk_or_a_file_system_without_links_releases_nothing(releases, monkeypatch, broken):
    releases.folder.mkdir(parents=True)

    def fail(*_, **__):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, broken, fail)
        with pytest.raises(PrivacyError, match="No space left"):
            releases.once(RELEASE, fresh)
    assert os.listdir(releases.folder) == []
    releases.once(RELEASE, fresh)


def test_records_are_found_by_the_key_wherever_its_file_is(tmp_path, monkeypatch, state):
    key = PrivateKey.new("hospital")
    assert Releases.of(key).folder == state / "releases" / key.offer.identity
    assert Releases.of(replace(key, party="another name")).folder == Releases.of(key).folder
    assert Releases.of(PrivateKey.new("hospital")).folder != Releases.of(key).folder
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(STATE, "here")
    assert Releases.of(key).folder.is_relative_to(tmp_path / "here")
    # Nothing of the key itself, whose public half stands in the plan, can be read off the name.
    assert key.value.hex() not in str(Releases.of(key).folder)
    monkeypatch.delenv(STATE)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home"))
    assert Releases.of(key).folder.is_relative_to(tmp_path / "home" / "vertimrf")


def test_the_state_folder_and_its_records_are_made_for_their_owner_alone(tmp_path, monkeypatch):
    monkeypatch.setenv(STATE, str(tmp_path / "a" / "b"))
    releases = Releases.of(PrivateKey.new("hospital"))
    releases.once(RELEASE, fresh)
    for folder in (releases.folder, *releases.folder.parents[:3]):
        assert folder.stat().st_mode & 0o777 == 0o700
    assert (releases.folder / RELEASE.name).stat().st_mode & 0o777 == 0o600


def test_tables_are_told_apart_by_their_records_and_not_by_their_order():
    rng, key = np.random.default_rng(0), PrivateKey.new("hospital")
    (table,) = dealt(schema_of(one={"a": 4, "b": 3}), rng.integers(0, 3, (2, 200)))

    def digest_of(table=table, key=key, plan=b"p" * 32):
        return table_digest(InMemory(table), key, plan)

    order = rng.permutation(200)
    assert digest_of(records_of(table, order)) == digest_of()
    codes, digests = table.codes.copy(), table.digests.copy()
    codes[1, 150] = (codes[1, 150] + 1) % 3
    digests[199] += np.uint64(1)
    others = [
        digest_of(replace(table, codes=codes)),
        digest_of(replace(table, digests=digests)),
        digest_of(replace(table, codes=np.ascontiguousarray(table.codes[:, order]))),
        digest_of(records_of(table, slice(-1))),
        digest_of(key=PrivateKey.new("hospital")),
        digest_of(plan=b"q" * 32),
    ]
    assert len({digest_of(), *others}) == 7


def test_tables_that_collide_under_keys_of_anybody_else_do_not_under_a_partys():
    """The attacker knows the secret and chooses the ids, so that two tables have one sum under every key it can compute.

    It learns those keys by running the party's code, with private keys of its own.
    """
    (table,) = dealt(schema_of(one={"a": 4, "b": 3}), np.zeros((2, 5), int))
    known = set()

    class Chosen(InMemory):
        """Records whose sums are all one under known keys."""

        def keyed_sum(self, key):
            return 0 if key in known else super().keyed_sum(key)

    class Watched(InMemory):
        def keyed_sum(self, key):
            known.add(key)
            return super().keyed_sum(key)

    for name in ("insurer", "hospital"):
        table_digest(Watched(table), PrivateKey.new(name), b"p" * 32)
    party = PrivateKey.new("hospital")
    one, other = (
        table_digest(Chosen(replace(table, digests=table.digests + np.uint64(i))), party, b"p" * 32)
        for i in range(2)
    )
    assert one != other


def test_nobody_finds_a_partys_table_in_a_dictionary_by_its_digest():
    """Two parties with one table have different digests, and a reader with every table, but neither key, finds neither."""
    (table,) = dealt(schema_of(one={"a": 4, "b": 3}), np.zeros((2, 5), int))
    dictionary = [InMemory(records_of(table, slice(count))) for count in range(6)]
    keys = [PrivateKey.new(name) for name in ("hospital", "insurer", "reader")]
    hospital, insurer, reader = (
        [table_digest(records, key, b"p" * 32) for records in dictionary] for key in keys
    )
    assert len({*hospital, *insurer, *reader}) == 3 * len(dictionary)
