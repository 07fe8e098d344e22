"""One message for one plan and table, wherever a party's files were copied to; the attacker is the benchmarks'."""

import pytest

from benchmarks.attacks import many_places
from benchmarks.attacks.many_places import PLACES, Victim, machine


@pytest.mark.parametrize("place", list(PLACES)[1:])
def test_on_one_machine_every_place_gives_the_message_that_is_on_record(place, tmp_path):
    victim = Victim(tmp_path)
    with machine(tmp_path / "state"):
        first = PLACES["the run folder"](victim)
        assert PLACES[place](victim) == first
        # The other way round, as well.
        assert PLACES["the run folder"](victim) == first


def test_on_machines_without_a_record_every_place_gives_the_same_message(tmp_path):
    assert len(set(many_places.messages(tmp_path, len(PLACES)))) == 1


def test_another_table_gets_none_from_any_copy(tmp_path):
    assert many_places.refusals(tmp_path) == 0
