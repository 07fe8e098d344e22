"""What travels in a Flower message, and into what pieces Flower cuts it."""

import pytest

pytest.importorskip("flwr")

from flwr.supercore.inflatable.inflatable_object import get_all_nested_objects
from flwr.supercore.inflatable.inflatable_utils import inflate_object_from_contents

from vertimrf.errors import MessageError
from vertimrf.flower.parcel import MAX_FILES, Parcel

# What Flower puts into one request, bytes; its own figure, with room for headers.
PIECE = 5 * 2**20 + 10_000


@pytest.mark.parametrize(
    "parcel",
    [
        Parcel(
            "hospital", "done", files={"message": bytes(range(256)) * (64 * 2**12), "offer": b"{}"}
        ),
        Parcel("Szpital Św. Anny", wants={"message": 1 << 26}, files={"plan": b"{}"}),
    ],
    ids=["a large answer", "a question"],
)
def test_a_message_of_any_size_travels_in_small_pieces_and_arrives(parcel):
    records = parcel.to_records()
    pieces = {name: piece.deflate() for name, piece in get_all_nested_objects(records).items()}
    assert max(map(len, pieces.values())) < PIECE
    assert Parcel.from_records(inflate_object_from_contents(records.object_id, pieces)) == parcel


@pytest.mark.parametrize(
    "files", [{"../plan": b""}, {"Plan": b""}, {f"a{i}": b"" for i in range(MAX_FILES + 1)}]
)
def test_files_that_no_run_has_are_refused(files):
    with pytest.raises(MessageError, match="files that no run has"):
        Parcel("hospital", files=files)
