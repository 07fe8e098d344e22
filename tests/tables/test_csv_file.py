"""CSV files in blocks: Arrow's rows, whatever the blocks are; one bad row costs itself; and no thread outlives a refusal."""

import gzip
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from builders import rows_of
from hypothesis import given, settings
from hypothesis import strategies as st
from tools.neighbouring import LONGER

from vertimrf.errors import TableError
from vertimrf.tables import csv_file, encodings
from vertimrf.tables.dropped import CELLS, ENDLESS
from vertimrf.tables.read_options import ReadOptions
from vertimrf.tables.sources import open_pieces, read_arrow

SCHEMA = """[[party]]
name = "one"
[[party.attribute]]
name = "x"
values = ["1", "2"]
"""


def written(path, content):
    path.write_bytes(content)
    return path


def in_blocks(patch, block, longest=1 << 24):
    patch.setattr(csv_file, "BLOCK", block)
    patch.setattr(csv_file, "LONGEST_ROW", longest)


def rows_of_arrow(content):
    """The rows and the number of malformed ones by Arrow's own reader, which gets the whole file at once."""
    wrong = []
    table = pa.csv.read_csv(
        pa.BufferReader(content),
        parse_options=pa.csv.ParseOptions(
            newlines_in_values=True,
            invalid_row_handler=lambda row: (wrong.append(row.text), "skip")[1],
        ),
        convert_options=pa.csv.ConvertOptions(
            column_types={"a": pa.string(), "b": pa.string()},
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )
    return table.to_pylist(), len(wrong)


MARKS = st.lists(st.sampled_from([b",", b'"', b"\n", b"\r", b"x", b"\xc3\xa9", b" "]), max_size=24)


@settings(max_examples=300)
@given(MARKS.map(b"".join), st.sampled_from([1, 2, 3, 7, 1 << 22]))
def test_rows_are_those_of_arrow(tmp_path_factory, text, block):
    # Which ends an open quote with the file: Arrow takes what it holds for a cell, and we take it for none.
    content = b"a,b\n" + text + b"\n"
    path = written(tmp_path_factory.mktemp("csv") / "t.csv", content)
    with pytest.MonkeyPatch.context() as patch:
        in_blocks(patch, block)
        rows, said = rows_of(path)
    theirs, wrong = rows_of_arrow(content)
    endless = sum(count for why, _, count in said if why == ENDLESS)
    assert rows == theirs[: len(rows)]
    assert sum(count for *_, count in said) + len(rows) == wrong + len(theirs)
    assert endless <= 1
    assert (rows == theirs) or endless


HEADER, SHORT = b"id,x,y", [b"%d,%d,a" % (i, i % 3) for i in range(40)]


@pytest.mark.parametrize("place", [0, 20, 39])
@pytest.mark.parametrize(
    "long", [b"900,1," + b"9" * 700, b"900," + b"x" * 700, b'900,1,"' + b"a\n" * 300 + b'"']
)
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_blocks_of_any_size_give_the_same_rows(tmp_path, monkeypatch, place, long, end):
    content = end.join([HEADER, b"1", *SHORT[:place], long, *SHORT[place:], b"2"])
    path, read = written(tmp_path / "t.csv", content), []
    for block in (1 << 22, 64, 7, 1):
        in_blocks(monkeypatch, block)
        rows, said = rows_of(path)
        read.append((rows, sum(count for *_, count in said), said[0][:2]))
    assert read[1:] == read[:1] * 3
    assert len(read[0][0]) == 40 + (b"900,1" in long)
    assert read[0][1] == 2 + (b"900,1" not in long)
    assert read[0][2] == (CELLS, "1")


LIMIT = 100


@pytest.mark.parametrize("block", [1, 7, 64, 1 << 22])
@pytest.mark.parametrize("size", [LIMIT - 1, LIMIT, LIMIT + 1, 50 * LIMIT])
@pytest.mark.parametrize("cell", [b"z", b'"z""\n,z""\n,"'])
def test_a_row_that_is_too_long_costs_itself_alone(tmp_path, monkeypatch, block, size, cell):
    """Whether it is depends on its own length, wherever a block ends; what is in it, also quotes and line ends, is skipped."""
    in_blocks(monkeypatch, block, LIMIT)
    row = b"900,1," + cell
    # Longer by whole pairs of quotes, and by letters in front of the first.
    row = row.replace(b'""\n,', b'""\n,' * ((size - len(row)) // 8 + 1))
    row = row.replace(b"z", b"z" * (size - len(row) + 1), 1)
    assert len(row) == size
    for place in (0, 1, 20, 40):
        content = b"\n".join([HEADER, *SHORT[:place], row, *SHORT[place:]])
        rows, said = rows_of(written(tmp_path / "t.csv", content))
        assert [row["id"] for row in rows if row["id"] != "900"] == [str(i) for i in range(40)]
        assert len(rows) == 40 + (size <= LIMIT)
        assert [(why, count) for why, _, count in said] == [(ENDLESS, 1)] * (size > LIMIT)
        assert all(row.decode().startswith(text) for _, text, _ in said)


def test_an_open_quote_is_no_cell(tmp_path):
    rows, said = rows_of(written(tmp_path / "t.csv", b'id,x\n1,a\n2,"b\n3,c\n'))
    assert rows == [{"id": "1", "x": "a"}]
    assert [(why, text.strip(), count) for why, text, count in said] == [(ENDLESS, '2,"b\n3,c', 1)]


def test_malformed_rows_are_told_of_by_the_block(tmp_path, monkeypatch):
    """A compressed file can hold 1,000 times its size of them: none may cost a call of Python's."""
    in_blocks(monkeypatch, 1 << 12)
    path = written(tmp_path / "t.csv.gz", gzip.compress(b"id,x\n" + b"1\n" * 100_000))
    rows, said = rows_of(path)
    assert rows == []
    assert sum(count for *_, count in said) == 100_000
    assert len(said) <= 200_000 // (1 << 12) + 2


# Files that are refused, by command, and the sentence.
REFUSED = {
    "zeros.csv.gz": (gzip.compress(bytes(30_000_000)), "check", "has no header: its first row has"),
    "malformed.csv": (b"id,x\n1,2\n3\n4,5,6\n", "check", "2 rows have more or fewer cells than"),
    "long.csv": (
        b"id,x\n"
        + b"".join(b"%d,%s%s\n" % (i, b"y" * 2000, b"," * (i == 10)) for i in range(9000)),
        "draft",
        "a row has more or fewer cells than the header ('10,yyy",
    ),
    "torn.csv.gz": (
        gzip.compress(np.random.default_rng(0).bytes(400_000))[:300_000],
        "draft",
        "cannot be read as a table",
    ),
    "quote.csv": (b'id,x\n1,2\n2,"1\n', "draft", "a row has more than 16 MB, or a quote that"),
    "blank.csv": (b"\n\n", "check", "is empty; a table needs a header and records"),
}


def command(folder, name, what):
    """A process of the command that reads the file."""
    words = {
        "check": ["check", name, "--schema", "s.toml", "--id", "id"],
        "draft": ["schema", "draft", name, "--id", "id", "--out", "o.toml"],
    }[what]
    return subprocess.run(
        [sys.executable, "-m", "vertimrf", *words],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
    )


def refuse(folder, name, times):
    content, what, words = REFUSED[name]
    written(folder / name, content)
    written(folder / "s.toml", SCHEMA.encode())
    with ThreadPoolExecutor(2) as pool:
        every = list(pool.map(lambda _: command(folder, name, what), range(times)))
    for done in every:
        assert done.returncode == 2, done.stderr
        assert words in done.stderr
        assert "Fatal" not in done.stderr


@pytest.mark.parametrize("name", ["zeros.csv.gz"])
def test_a_command_that_refuses_a_table_ends(tmp_path, name):
    """Arrow's threads once aborted the process: three times of three with this file."""
    refuse(tmp_path, name, 1)


@pytest.mark.slow
@pytest.mark.parametrize("name", REFUSED)
def test_a_command_that_refuses_a_table_ends_fifty_times(tmp_path, name):
    refuse(tmp_path, name, 50)


@pytest.mark.parametrize("name", [name for name in REFUSED if "torn" not in name])
def test_a_file_is_read_by_the_thread_that_asks(tmp_path, monkeypatch, name):
    """So nothing of it runs when a refusal ends the process: decoding, and what is done for malformed rows."""
    found, threads = csv_file.codecs.getincrementaldecoder, set()

    def noting(encoding):
        class Noting(found(encoding)):
            def decode(self, *given):
                threads.add(threading.get_ident())
                return super().decode(*given)

        return Noting

    monkeypatch.setattr(csv_file.codecs, "getincrementaldecoder", noting)
    path = written(tmp_path / name, REFUSED[name][0])
    for unreadable in (None, lambda *_: threads.add(threading.get_ident())):
        try:
            list(open_pieces(path).read(unreadable=unreadable))
        except TableError:
            continue
    assert threads == {threading.get_ident()}


@pytest.mark.parametrize(
    "content, words",
    [
        (b"\n\r\n", "is empty; a table needs a header and records."),
        (b"x" * 300, "has no header: its first row has more than"),
        (b'"id,x\n1,2\n', "has no header: its first row has more than"),
        (b"id,x\n1\n", "a row has more or fewer cells than the header ('1'); correct it."),
        (b"id,x\n1,2\n" + b"y" * 300, "or a quote that nothing closes ('yyyy"),
    ],
)
def test_what_is_no_table_is_told(tmp_path, monkeypatch, content, words):
    in_blocks(monkeypatch, 64, 200)
    with pytest.raises(TableError) as caught:
        read_arrow(written(tmp_path / "t.csv", content))
    assert words in str(caught.value)
    assert str(caught.value).startswith(f"{tmp_path / 't.csv'}")


def test_surrogates_that_a_codec_lets_pass_stay_in_their_cell(tmp_path):
    path = written(tmp_path / "t.csv", b"id,x\n1,+2AA-\n2,b\n")
    rows, said = rows_of(path, ReadOptions(encoding="utf-7"))
    assert rows == [{"id": "1", "x": "\\ud800"}, {"id": "2", "x": "b"}]
    assert said == []


# Words that an encoding has, some with a bar, a brace or a backslash among their bytes.
CHARACTERS = {
    charset: ["표", "가나", "a"] for charset in ("euc_kr", "cp949", "johab", "iso2022_kr")
}
CHARACTERS |= {charset: ["啊", "中文", "a"] for charset in ("gbk", "gb18030", "hz", "utf-7")}
CHARACTERS |= {charset: ["功", "許", "a"] for charset in ("big5", "big5hkscs")}
CHARACTERS |= {
    charset: ["ソ", "表ポ", "a"] for charset in ("shift_jis", "cp932", "euc_jp", "iso2022_jp")
}


# Encodings, and ends of a record that begin a character or a shift.
BEGUN = [(charset, end) for charset, ends in LONGER.items() for end in ends]


@pytest.mark.parametrize("charset, end", BEGUN)
def test_a_character_that_is_begun_takes_no_other_row_with_it(tmp_path, charset, end):
    """Not the rows behind it, also if they are the last and shorter than what it would take."""
    path = written(tmp_path / "t.csv", b"x,y\n1,a" + end + b"\n2,b\n3,c\n")
    rows, said = rows_of(path, ReadOptions(encoding=charset))
    assert rows[-2:] == [{"x": "2", "y": "b"}, {"x": "3", "y": "c"}]
    assert len(rows) + len(said) == 3


@pytest.mark.parametrize("charset, end", BEGUN)
def test_a_character_that_is_begun_in_quotes_does_not_take_the_quote(tmp_path, charset, end):
    if charset.startswith(("iso2022", "hz")):
        pytest.skip("What is shifted lasts to the end of the line.")
    path = written(tmp_path / "t.csv", b'x,y\n"a' + end + b'","b\nc"\n3,c\n')
    (first, second), _ = rows_of(path, ReadOptions(encoding=charset))
    assert (first["y"], second) == ("b\nc", {"x": "3", "y": "c"})


@pytest.mark.parametrize("charset", [*LONGER])
@pytest.mark.parametrize("block", [3, 50, 1 << 22])
def test_texts_of_longer_characters_are_read_in_blocks_of_any_size(
    tmp_path, monkeypatch, charset, block
):
    in_blocks(monkeypatch, block, 16 << 20)
    texts = ["x,y", *(f"{word},a" for word in CHARACTERS[charset]), '"p\nq",b', "4,"]
    path = written(tmp_path / "t.csv", "\n".join(texts).encode(charset))
    rows, said = rows_of(path, ReadOptions(encoding=charset))
    assert [row["x"] for row in rows] == [*CHARACTERS[charset], "p\nq", "4"]
    assert said == []


def test_a_line_without_an_end_is_not_kept_in_memory(monkeypatch):
    monkeypatch.setattr(encodings, "LONGEST_PIECE", 100)
    decoder = encodings.decoder_of("gbk")
    texts = [decoder.decode(b"\xb0\xa1" * 30) for _ in range(10)]
    assert [len(text) for text in texts[:2]] == [0, 60]
    assert "".join([*texts, decoder.decode(b"", True)]) == "啊" * 300


PREAMBLE = "# a comment, with a comma\nfrom: the ward\nid;x\n1;2\n2;1\n"


@pytest.mark.parametrize(
    "text, names, more",
    [
        (PREAMBLE, ("id", "x"), {"skip_rows": 2}),
        (
            "note\n1;2\n2;1\n",
            ("a", "b"),
            {"skip_rows": 1, "no_header": True, "columns": ("a", "b"), "delimiter": ";"},
        ),
    ],
)
def test_lines_before_a_header_and_a_header_may_lack_in_any_blocks(
    tmp_path, monkeypatch, text, names, more
):
    path = written(tmp_path / "t.csv", text.encode())
    for block in (1 << 22, 1, 7):
        in_blocks(monkeypatch, block)
        rows, said = rows_of(path, ReadOptions(**more))
        assert [tuple(row.items()) for row in rows] == [
            tuple(zip(names, cells, strict=True)) for cells in ("12", "21")
        ]
        assert not said


@pytest.mark.parametrize("lines", [5, 6, 99])
def test_more_skipped_lines_than_there_are_leave_an_empty_table(tmp_path, lines):
    path = written(tmp_path / "t.csv", PREAMBLE.encode())
    with pytest.raises(TableError, match=f"is empty behind --skip-rows {lines}; a table"):
        read_arrow(path, ReadOptions(skip_rows=lines))
    with pytest.raises(TableError, match="The lines before a header are 0 or more, not -1"):
        ReadOptions(skip_rows=-1)
