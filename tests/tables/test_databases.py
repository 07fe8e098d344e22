"""Tables that a query gives: the rows of the same table in a file, from every kind of database, also in a run that is killed."""

import glob
import os
import shutil
import sqlite3
import subprocess
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from builders import rows_of
from commands import good, refused
from runs.conversation import RECORDS, SCHEMA, Conversation, process

from vertimrf import PlanOptions, ReadOptions, Schema, draft_schema
from vertimrf.errors import TableError
from vertimrf.tables.databases import database_of
from vertimrf.tables.objects import of_one_type
from vertimrf.tables.sources import located, open_pieces, read_arrow, written

duckdb = pytest.importorskip("duckdb")

EVERY = "SELECT * FROM people ORDER BY ward DESC;"
SECRET = "hush-hush"
KINDS = ["duckdb", "sqlite", "postgresql"]
# A role that ends by SIGKILL before its n-th step, a step being a query begun or ended, or a file put in place.
TURN = """
import contextlib, hashlib, os, signal, sys
from vertimrf.runs.party_run import PartyRun
from vertimrf.tables import databases
left = [int(sys.argv[2])]
def step():
    left[0] -= 1
    if left[0] == 0:
        os.kill(os.getpid(), signal.SIGKILL)
def counted(reader):
    @contextlib.contextmanager
    def opened(*given):
        step()
        with reader(*given) as found:
            yield found
            step()
    return opened
def placed(function):
    return lambda *given, **more: (step(), function(*given, **more))[1]
for kind, reader in databases.READERS.items():
    databases.READERS[kind] = counted(reader)
os.replace, os.rename, os.link = map(placed, (os.replace, os.rename, os.link))
print(hashlib.sha256(PartyRun(sys.argv[1]).advance({})["message"]).hexdigest())
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """The address of a PostgreSQL server that this starts, without its password."""
    pytest.importorskip("adbc_driver_postgresql")
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin")) or [
        Path(path).parent for path in [shutil.which("initdb")] if path
    ]
    if not found:
        pytest.skip("PostgreSQL is not installed.")
    # A socket's path has about a hundred characters at most, and root may start no server.
    folder = Path(tempfile.mkdtemp(prefix="pg"))
    who = {"user": "postgres"} if os.getuid() == 0 else {}
    (folder / "password").write_text(SECRET)
    if who:
        shutil.chown(folder, "postgres")
        shutil.chown(folder / "password", "postgres")

    def called(program, *words):
        words = [f"{found[-1]}/{program}", "-D", f"{folder}/data", *words]
        with open(folder / "words", "w") as log:
            subprocess.run(words, check=True, stdout=log, stderr=log, cwd="/", **who)

    called("initdb", "-U", "holder", "-A", "scram-sha-256", f"--pwfile={folder}/password")
    options = f"-k {folder} -c listen_addresses='' -c fsync=off"
    called("pg_ctl", "-w", "-o", options, "-l", f"{folder}/log", "start")
    yield f"postgresql://holder@/postgres?host={folder}"
    called("pg_ctl", "-m", "immediate", "stop")
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def begun(tmp_path_factory):
    """A run in which nothing was released; the hospital's table, in Parquet too."""
    folder = tmp_path_factory.mktemp("databases")
    planning = PlanOptions(expected_records=RECORDS, message_bytes=50_000)
    Conversation.begun(folder / "start", planning)
    table = pa.csv.read_csv(folder / "start" / "hospital.csv")
    pq.write_table(table, folder / "people.parquet")
    Schema.of({"hospital": SCHEMA.part("hospital")}).save(folder / "schema.toml")
    return folder


@pytest.fixture
def address(begun, request, monkeypatch):
    """A database of a kind with the table; gives its address, with the password in the environment."""
    kind = request.param
    table = pq.read_table(begun / "people.parquet")
    rows = [tuple(row.values()) for row in table.to_pylist()]
    path = begun / f"people.{kind}"
    columns = ", ".join(f"{name} bigint" for name in table.column_names)
    if kind == "postgresql":
        where = request.getfixturevalue("server")
        import adbc_driver_postgresql.dbapi as adbc

        monkeypatch.setenv("PGPASSWORD", SECRET)
        with adbc.connect(where) as connection, connection.cursor() as cursor:
            cursor.adbc_ingest("people", table, mode="replace")
            connection.commit()
        return where
    if kind == "duckdb" and not path.exists():
        with duckdb.connect(str(path)) as connection:
            connection.execute(f"CREATE TABLE people AS FROM '{begun}/people.parquet'")
    if kind == "sqlite" and not path.exists():
        connection = sqlite3.connect(path)
        connection.execute(f"CREATE TABLE people ({columns})")
        connection.executemany(f"INSERT INTO people VALUES ({','.join('?' * len(rows[0]))})", rows)
        connection.commit()
        connection.close()
    return f"{kind}:{path}"


every_kind = pytest.mark.parametrize("address", KINDS, indirect=True)


def sorted_rows(table):
    return sorted(table.to_pylist(), key=lambda row: row["id"])


@every_kind
def test_a_query_gives_the_rows_of_the_file(begun, address):
    read = ReadOptions(query=EVERY)
    assert sorted_rows(read_arrow(address, read)) == sorted_rows(
        pq.read_table(begun / "people.parquet")
    )
    (piece,) = open_pieces(address, read).read(["ward", "id"])
    assert piece.column_names == ["ward", "id"]


@every_kind
def test_every_command_takes_a_query(begun, address, tmp_path):
    asked = [address, "--query", EVERY]
    schema = begun / "schema.toml"
    good("schema draft", asked, f"--id id --out {tmp_path}/draft.toml")
    assert {*Schema.load(tmp_path / "draft.toml").names} == {"smoker", "ward"}
    assert "is ready for" in good("check", asked, f"--schema {schema}")
    made = f"--id id --schema {schema} --epsilon 1 --out {tmp_path}/made.csv"
    good("synthesize", asked, made)
    compared = f"--synthetic {tmp_path}/made.csv --schema {schema} --ways 1"
    assert "1-way TVD" in good("evaluate --real", asked, compared)


# The protocol is the same for all; each takes seconds.
@pytest.mark.slow
@pytest.mark.parametrize("address", KINDS, indirect=True)
def test_a_run_from_a_query_that_is_killed_gives_the_message_of_the_file(
    begun, address, tmp_path, monkeypatch
):
    def message(folder, table, query, *kills):
        """The digest of the hospital's message from a table, after a kill before each of these steps."""
        # Releases are recorded anew, so that each table makes its own message.
        monkeypatch.setenv("VERTIMRF_STATE", str(tmp_path / f"{folder}.state"))
        lines = [f"table = '{located(table)}'", *[f"query = '{query}'"] * bool(query)]
        run = Conversation.copied(begun / "start", tmp_path / folder).accepted("hospital", *lines)
        for kill in (*kills, 0):
            told = process(TURN, run, kill)
        for path in run.folder.rglob("*"):
            assert not path.is_file() or SECRET.encode() not in path.read_bytes()
        assert SECRET not in told + run.state().text()
        return told

    of_file = message("file", begun / "people.parquet", None)
    assert message("query", address, EVERY, 1, 2, 5) == of_file


@pytest.mark.parametrize("address", ["postgresql"], indirect=True)
def test_numbers_ids_and_texts_of_postgresql_are_those_of_a_file(address):
    query = (
        "SELECT 'aa0e8400-e29b-41d4-a716-446655440000'::uuid AS id, 12.5::numeric AS n, "
        "'ok'::text AS t, date '2020-02-01' AS d"
    )
    pieces = open_pieces(address, ReadOptions(query=query))
    (piece,) = pieces.read(["n", "t", "d"])
    assert piece["n"].to_pylist() == [12.5]
    assert of_one_type(piece["n"]).type == pa.float64()
    assert piece.schema.field("d").type == pa.date32()
    assert read_arrow(address, ReadOptions(query=query))["id"].type.bit_width == 128


@pytest.mark.parametrize("address", ["duckdb", "postgresql"], indirect=True)
def test_uuids_of_a_database_are_ids_of_a_draft(address):
    name = "'aa0e8400-e29b-41d4-a716-4466554400%s'::uuid AS id, %d AS age"
    query = " UNION ALL ".join("SELECT " + name % (n, n) for n in range(10, 90))
    drafted = draft_schema(address, "id", read=ReadOptions(query=query)).schema
    assert drafted.names == ("age",)
    assert drafted.ids.count("-") == 4


@pytest.mark.parametrize("address", ["postgresql"], indirect=True)
def test_a_refused_password_is_in_no_error(address, monkeypatch):
    monkeypatch.setenv("PGPASSWORD", "wrong-one")
    with pytest.raises(TableError, match="password authentication failed") as refusal:
        open_pieces(address, ReadOptions(query=EVERY))
    assert "wrong-one" not in str(refusal.value)


@pytest.mark.parametrize(
    "address",
    [
        f"postgresql://me:{SECRET}@host/db",
        f"POSTGRES://me:{SECRET}@host/db",
        f"postgresql://host/db?user=me&password={SECRET}",
        f"postgresql://host/db?pass%77ord={SECRET}",
        f"postgresql://host/db?user=me&%20password%20={SECRET}",
        f"postgresql://host/db?user=me& password = {SECRET}",
        f"postgresql://host/db?user=me&PASSWORD={SECRET}",
        f"postgresql://host/db?sslpassword={SECRET}",
        f"postgresql://host/db?options=-c%20my.key%3D{SECRET}",
        f"postgresql://host/password%3D{SECRET}",
        f"postgresql://host/db?dbname=postgres://me:{SECRET}@host/db",
        f"postgresql://me%3A{SECRET}@host/db",
        f"postgresql:host=host password={SECRET}",
        f"postgresql://host/db#{SECRET}:{SECRET}@",
    ],
)
def test_an_address_with_a_password_is_refused_and_not_repeated(tmp_path, address):
    for words in (
        ["schema", "draft", address, "--query", "SELECT 1", "--out", f"{tmp_path}/s.toml"],
        ["run", "party", f"{tmp_path}/run", "--name", "a", "--table", address, "--id", "id"],
    ):
        printed = refused(words)
        assert "has no password" in printed
        assert SECRET not in printed
    assert not [*tmp_path.iterdir()]


@every_kind
@pytest.mark.parametrize(
    "query",
    [
        "SELECT 1; SELECT 2",
        "SELECT 1 AS a) AS b; DROP TABLE people; SELECT * FROM (SELECT 1 AS a",
        "DELETE FROM people RETURNING ward",
        "CREATE TABLE more AS SELECT 1 AS a",
        "WITH gone AS (DELETE FROM people RETURNING ward) SELECT * FROM gone",
    ],
)
def test_a_query_that_is_no_select_changes_nothing(begun, address, query):
    for asked in (query, f"{query};"):
        with pytest.raises(TableError):
            open_pieces(address, ReadOptions(query=asked)).whole()
    table = read_arrow(address, ReadOptions(query=EVERY))
    assert sorted_rows(table) == sorted_rows(pq.read_table(begun / "people.parquet"))


@pytest.mark.parametrize("address", ["postgresql"], indirect=True)
def test_postgresql_is_opened_to_be_read_only(address):
    """A function that a SELECT calls may write; the transaction forbids it."""
    read = ReadOptions(query="SELECT nextval('drawn') AS number")
    import adbc_driver_postgresql.dbapi as adbc

    with adbc.connect(address) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE SEQUENCE IF NOT EXISTS drawn")
        connection.commit()
    with pytest.raises(TableError, match="read-only transaction"):
        open_pieces(address, read).whole()
    good = ReadOptions(query="SELECT current_setting('transaction_read_only') AS only")
    assert read_arrow(address, good)["only"].to_pylist() == ["on"]


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://holder@/postgres?host=/tmp/pgx",
        "postgresql://holder@%2Ftmp%2Fpgx/postgres",
        "postgresql://me@host.example:5432,other:5433/db?sslmode=verify-full&sslrootcert=/etc/ca.pem",
        "postgres://[2001:db8::1]:5432/db?connect_timeout=3",
        "postgresql:///db",
    ],
)
def test_an_address_without_a_secret_is_taken(address):
    assert database_of(address) == ("postgresql", "postgresql:" + address.partition(":")[2])


def test_events_become_columns_of_a_person(tmp_path):
    events = pa.table({"person": ["a", "b", "a", "a"], "amount": [3, 9, 5, 4]})
    pq.write_table(events, tmp_path / "events.parquet")
    query = "SELECT person, count(*) AS visits, max(amount) AS most FROM 'events.parquet' GROUP BY person"
    table = read_arrow(f"duckdb:{tmp_path}", ReadOptions(query=query))
    rows = sorted(table.to_pylist(), key=lambda row: row["person"])
    assert [[*row.values()] for row in rows] == [["a", 3, 5], ["b", 1, 9]]


@pytest.mark.parametrize(
    "what", ["TABLE pragma_visits (x)", "VIEW pragma_visits AS SELECT x FROM t"]
)
def test_a_table_of_sqlite_may_have_a_pragmas_name(tmp_path, what):
    connection = sqlite3.connect(tmp_path / "s")
    connection.execute("CREATE TABLE t (x)")
    connection.execute(f"CREATE {what}")
    connection.execute(f"INSERT INTO {'t' if 'VIEW' in what else 'pragma_visits'} VALUES (7)")
    connection.commit()
    connection.close()
    read = read_arrow(f"sqlite:{tmp_path}/s", ReadOptions(query="SELECT * FROM pragma_visits"))
    assert read.to_pylist() == [{"x": 7}]


@pytest.mark.parametrize(
    "address, query, sentence",
    [
        ("duckdb:{0}/none", "SELECT 1", "There is no table"),
        ("sqlite:{0}/none", "SELECT 1", "There is no table"),
        ("duckdb:{0}/d", None, "is a database: give query="),
        ("duckdb:{0}/d", "DROP TABLE t", "has 1 statements: DROP; give one SELECT"),
        ("duckdb:{0}/d", "SELECT 1; SELECT 2", "has 2 statements: SELECT, SELECT"),
        ("duckdb:{0}/d", "COPY t TO '{0}/copy.csv'", "1 statements: COPY"),
        ("duckdb:{0}/d", "SELECT 1) AS a; DROP TABLE t; SELECT * FROM (SELECT 2", "cannot be read"),
        ("duckdb:{0}/d", "SELECT 1 FROM 'http://me:hush@host/t'", "has an address with a password"),
        ("duckdb:md:people?token=hush", "SELECT 1", "names a file or folder of this machine"),
        ("sqlite:{0}/s", "SELECT 1; SELECT 2", "cannot be read as a table"),
        ("sqlite:{0}/s", "SELECT 1) AS a, (SELECT 2", "cannot be read as a table"),
        ("sqlite:{0}/s", "ATTACH '{0}/new' AS n", "cannot be read as a table"),
        ("sqlite:{0}/s", "SELECT * FROM pragma_query_only", "cannot be read as a table"),
        ("duckdb:{0}/d", "SELECT 1) AS t; DROP TABLE t; --", "cannot be read as a table"),
        ("sqlite:{0}/s", "DELETE FROM t RETURNING 1", "cannot be read as a table"),
        ("sqlite:{0}/d", "SELECT * FROM t", "cannot be read as a table"),
        ("duckdb:{0}/s", "SELECT * FROM t", "cannot be read as a table"),
        ("duckdb:{0}/d", "SELECT none FROM t", 'column "none" not found'),
        ("duckdb:{0}/d", "SELECT x, x FROM (SELECT 1 AS x)", None),
        ("postgresql://127.0.0.1:1/none", "SELECT 1", "Connection refused"),
        ("{0}/t.csv", "SELECT 1", "is no database, so it takes no query"),
    ],
)
def test_what_gives_no_table_is_refused(tmp_path, address, query, sentence):
    (tmp_path / "t.csv").write_text("x\n1\n")
    with duckdb.connect(str(tmp_path / "d")) as connection:
        connection.execute("CREATE TABLE t AS SELECT 1 AS x")
    connection = sqlite3.connect(tmp_path / "s")
    connection.execute("CREATE TABLE t (x)")
    connection.commit()
    connection.close()
    address = address.format(tmp_path)
    if "postgresql" in address:
        pytest.importorskip("adbc_driver_postgresql")
    if sentence is not None:
        with pytest.raises(TableError, match=sentence):
            open_pieces(address, ReadOptions(query=query and query.replace("{0}", str(tmp_path))))
    assert not {*tmp_path.iterdir()} - {tmp_path / name for name in ("t.csv", "d", "s")}
    with duckdb.connect(str(tmp_path / "d"), True) as connection:
        assert connection.sql("FROM t").fetchall() == [(1,)]


def test_a_database_that_was_written_later_is_another(tmp_path):
    """Also if what was written still waits beside the file."""
    path = tmp_path / "d"
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("CREATE TABLE t (x)")
    connection.commit()
    before = written(f"sqlite:{path}")
    connection.execute("INSERT INTO t VALUES (1)")
    connection.commit()
    assert written(f"sqlite:{path}") != before
    connection.close()
    assert written("sqlite:none") == ""


def test_a_cell_of_sqlite_counts_by_its_own_type(tmp_path):
    connection = sqlite3.connect(tmp_path / "s")
    connection.execute("CREATE TABLE t (x)")
    cells = [(1,), ("a",), (2.5,), (None,), (b"\xff",)]
    connection.executemany("INSERT INTO t VALUES (?)", cells)
    connection.execute("INSERT INTO t VALUES (CAST(x'ff' AS TEXT))")
    connection.commit()
    connection.close()
    read, _ = rows_of(f"sqlite:{tmp_path}/s", ReadOptions(query="SELECT * FROM t"))
    rows = [row["x"] for row in read]
    assert rows[:3] == [1, "a", 2.5]
    assert rows[-1] == "\\xff"
