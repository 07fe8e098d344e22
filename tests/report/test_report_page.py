"""The page: all of a run is on it, no name on it is taken for anything but a name, and a browser finds nothing to complain of."""

import json
import re
import shutil
import subprocess
from dataclasses import replace
from html import escape
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import sklearn.ensemble  # noqa: F401  (so that the limit below finds its threads)
from builders import decode
from commands import good, refused
from msgspec import structs
from pages import Figures, contradictions
from threadpoolctl import threadpool_limits

import vertimrf
from vertimrf import PlanOptions, write_report, write_table
from vertimrf.errors import PlanError, SchemaError, TableError
from vertimrf.model.trust import Evidence
from vertimrf.plan.verdict import percent
from vertimrf.report import figures
from vertimrf.report.content import content
from vertimrf.report.figures import shown
from vertimrf.report.page import compared, page
from vertimrf.report.run import Run
from vertimrf.server.released_figures import named
from vertimrf.utility.distances import tvd
from vertimrf.utility.figures import utility
from vertimrf.utility.original_values import original_values

CHROMIUM = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--enable-logging=stderr",
    "--hide-scrollbars",
)
# What a page may be made of; a name that was taken for markup would bring in others, or attributes that run.
TAGS = set(
    re.findall(
        r"\w+",
        """
    html head meta title style body div i header h1 h2 h3 p nav ul ol li a main section dl dt dd strong span details summary code
    footer table caption thead tbody tfoot tr th td figure figcaption svg path text desc
""",
    )
)


class Reader(HTMLParser):
    """Tags, attributes and text of a page."""

    def __init__(self, text):
        super().__init__()
        self.tags = []
        self.attributes = []
        self.words = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_data(self, data):
        self.words.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())


@pytest.fixture(scope="module")
def plain(made):
    return page(made.run)


@pytest.fixture(scope="module")
def beside_truth(made):
    return page(made.run, dict(enumerate(made.codes)))


def test_what_was_asked_is_on_the_page_as_text(made):
    words = "Marginals that matter most: a × b (asked: a ~ `<script>alert(1)</script>`)."
    run = replace(made.run, report=structs.replace(made.run.report, workload=(words,)))
    html = page(run)
    assert words in Reader(html).text
    assert set(Reader(html).tags) <= TAGS


def test_all_of_a_run_is_on_the_page(made, plain):
    read = Reader(plain)
    schema, ledger = made.run.model.schema, made.run.model.ledger
    for name in (*schema.names, *(party for party, _ in schema.parties)):
        assert " ".join(shown(name, 60).split()) in read.text
    for entry in ledger.entries:
        assert " ".join(entry.released.split()) in read.text
        assert entry.noise in read.text
    assert f"{ledger.epsilon:.4f}" in read.text
    assert f"ε if a party colludes {ledger.colluding_epsilon:.4g}" in read.text
    assert f"for what the other parties hold {ledger.colluding_epsilon:.4g}" in read.text
    assert made.run.report.plan in read.text
    assert vertimrf.__version__ in read.text
    assert "times out of 100" in read.text
    for phase in made.run.report.seconds:
        assert phase in read.text
    # A trial's times follow the data: the page says so.
    assert "Keep it all the same" in read.text
    # Each attribute is a table with bars.
    assert read.attributes.count(("class", "chart")) == len(schema.names)
    bars = [value for name, value in read.attributes if (name, value) == ("class", "model")]
    assert len(bars) == sum(len(column.labels) for column in content(made.run).columns)
    # The graph and the maps are figures, told in words too.
    assert read.tags.count("svg") == 1 + len(made.run.model.shapes) + 3
    assert read.tags.count("desc") == read.tags.count("svg")
    labelled = [name for name, _ in read.attributes].count("aria-labelledby")
    assert labelled == read.tags.count("svg") + read.tags.count("section")
    roles = {value for name, value in read.attributes if name == "role"}
    assert roles <= {"img", "alert", "region"}


def test_the_page_says_which_error_stands_where_and_scales_end_at_all_records(plain):
    headings = plain.count('class="n" title="one standard error of the noise">±</th>')
    assert headings == plain.count(">±</th>") > 0
    assert "two standard errors to either side; the columns ± are one" in Reader(plain).text
    ends = re.findall(r'<span class="soft">to ([0-9.]+) %</span>', plain)
    assert max(map(float, ends), default=101) <= 100


@pytest.mark.parametrize("epsilon, warned", [(1.0, False), (84.51, True)])
def test_a_large_epsilon_is_called_so(made, epsilon, warned, monkeypatch):
    monkeypatch.setattr(type(made.run.model.ledger), "epsilon", epsilon)
    html = page(made.run)
    assert f"ε = {epsilon:.4g} at" in html
    assert ("Such a large ε promises little" in html) == warned


def test_marks_stand_out_from_bars_and_tables_show_that_they_scroll(plain):
    def light(colour):
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))

    roots = [
        dict(re.findall(r"--(\w+): (#\w{6})", root)) for root in re.findall(":root {.*}", plain)
    ]
    assert len(roots) == 2  # Light and dark.
    for root in roots:
        for front, back in (("mark", "bar"), ("ink", "page"), ("soft", "card"), ("loud", "page")):
            dark, bright = sorted((light(root[front]), light(root[back])))
            assert (bright + 0.05) / (dark + 0.05) >= 4.5, (front, back)
    assert re.search(r"\.scroll {[^}]*no-repeat local[^}]*overflow-x: auto", plain)


def test_the_truth_is_marked_loudly(made, plain, beside_truth):
    read = Reader(beside_truth)
    assert "NOT PRIVATE. FOR YOUR OWN EYES." in read.text
    assert "Do not pass it on" in read.text
    assert "<title>NOT PRIVATE: " in beside_truth
    assert "model to truth" in read.text
    assert read.tags.count("svg") == Reader(plain).tags.count("svg") + 2
    assert "NOT PRIVATE" not in plain
    # The synthetic table is what it was.
    assert "The synthetic table and the model are private" in read.text


@pytest.mark.parametrize("kind", ["plain", "beside_truth"])
def test_no_name_is_taken_for_markup(kind, request):
    text = request.getfixturevalue(kind)
    read = Reader(text)
    assert set(read.tags) <= TAGS, set(read.tags) - TAGS
    assert not [name for name, _ in read.attributes if name.startswith("on")]
    # Nothing is loaded: links lead within the page, pictures are in it, and the policy forbids all else.
    for name, value in read.attributes:
        if name in ("href", "src", "xlink:href", "srcset", "action", "data"):
            assert value.startswith("#"), value
        assert not re.search(r"url\((?!#)", value)
    assert "http:" not in text.replace("http-equiv", "")
    assert "https:" not in text
    assert "@import" not in text
    policy = next(
        value for name, value in read.attributes if name == "content" and "default-src" in value
    )
    assert "default-src 'none'" in policy
    assert "script-src" not in policy
    # Control characters and those that turn writing round are shown as numbers.
    assert not re.search("[\x00-\x08\x0b-\x1f\u202a-\u202e\u2066-\u2069]", text)
    assert "\\u202e" in text
    # Names within figures are each figure's own.
    ids = [value for name, value in read.attributes if name == "id"]
    assert len(ids) == len(set(ids))
    for name, value in read.attributes:
        for target in re.findall(r"url\(#([^)]+)\)", value) + (
            [value[1:]] if name == "href" and value.startswith("#") else []
        ):
            assert target in ids


def test_many_attributes_keep_the_page_small(made, plain):
    """What a chart, a line of a graph and a map take, times many."""
    for size, most in ((90, 150_000), (241, 250_000)):
        matrix = np.random.default_rng(0).random((size, size))
        assert sum(len(path) for _, path in figures.shades(matrix, 1.0)) < most
    assert len(plain) < 10_000 * len(made.run.model.schema.names) + 50_000


def test_the_command(made, plain, tmp_path):
    out = tmp_path / "report.html"
    assert "Private (add or remove one record)" in good(f"report {made.folder} --out {out}")
    # The same run gives the same page.
    assert out.read_text(encoding="utf-8") == plain
    for arguments, words in (
        (f"{tmp_path}/none --out {out}", "no such file"),
        (f"{made.folder} --out {tmp_path}/report.pdf", "ends in .html"),
        (f"{made.folder} --out {out} --real x.csv --real y.csv", "--id"),
        (f"{made.folder} --out {tmp_path}/no/report.html", "folder does not exist"),
    ):
        assert words in refused("report", arguments)


def test_real_tables_are_read_by_the_runs_schema(made, tmp_path):
    schema = made.run.model.schema
    whole = decode(made.codes, schema.attributes, np.random.default_rng(0))
    whole = whole.append_column("id", [range(whole.num_rows)])
    tables = [tmp_path / f"{number}.parquet" for number in range(len(schema.parties))]
    for table, (_, names) in zip(tables, schema.parties, strict=True):
        write_table(whole.select(["id", *names]), table)
    label = write_report(made.folder, tmp_path / "with.html", real=tables, id="id")
    assert not label.private
    book = {}
    values = original_values(schema.attributes, whole, made.codes, "real", book)
    expected = page(
        made.run,
        dict(enumerate(made.codes)),
        beside=compared(made.run, schema.attributes, values, book),
    )
    assert (tmp_path / "with.html").read_text(encoding="utf-8") == expected
    with pytest.raises(TableError, match="name their column"):
        write_report(made.folder, tmp_path / "with.html", real=tables)


@pytest.mark.parametrize("columns", [(0, 1, 2), (5,)])
def test_a_party_compares_its_columns_alone(made, columns):
    truth = {a: made.codes[a] for a in columns}
    html, drawn = page(made.run, truth), content(made.run, truth).columns
    assert html.count('class="truth"') == sum(len(drawn[a].labels) for a in columns)
    assert ("model to truth" in Reader(html).text) == (len(columns) > 1)


def test_what_rows_are_good_for_is_told_beside_the_truth(made, monkeypatch):
    label = made.run.model.schema.names[2]
    scores = []
    monkeypatch.setattr(
        "vertimrf.report.content.utility",
        lambda *given: scores.append(utility(*given)) or scores[-1],
    )
    # Small fits on a busy machine spend their time waiting for each other's threads.
    with threadpool_limits(1):
        html = page(made.run, dict(enumerate(made.codes)), label)
    text, (score,) = Reader(html).text, scores
    shares = [
        format(score["trees"][source][measure], form)
        for measure, form in (("auc", ".3f"), ("accuracy", ".1%"))
        for source in ("synthetic", "real")
    ]
    assert f"scikit-learn {' '.join(shares).replace('%', ' %')}" in text
    assert f"real ones have an AUC of {score['propensity']:.3f};" in text
    assert f"to tell {' '.join(shown(label, 60).split())} from all other attributes" in text
    assert set(Reader(html).tags) <= TAGS
    with pytest.raises(PlanError, match="give the real tables too"):
        write_report(made.folder, made.folder / "none.html", label=label)
    assert "give the real tables too" in refused(
        f"report {made.folder} --out {made.folder}/none.html --utility x"
    )
    with pytest.raises(SchemaError, match="no attribute 'none'"):
        page(made.run, dict(enumerate(made.codes)), "none")


def test_runs_of_one_holder_too(tmp_path):
    schema = vertimrf.Schema.of(
        {"all": [vertimrf.Attribute.integer("a", 3), vertimrf.Attribute.integer("b", 2)]}
    )
    rng = np.random.default_rng(1)
    a = rng.integers(0, 3, 2000)
    fitted = vertimrf.Synthesizer(schema, planning=PlanOptions(expected_records=2000)).fit(
        pd.DataFrame({"a": a, "b": a > 0}).astype(int), epsilon=2.0
    )
    fitted.save(tmp_path / "run.model")
    (tmp_path / "report.json").write_text(json.dumps(fitted.to_json()))
    pages = [page(Run.open(tmp_path), truth) for truth in (None, {0: a.astype(np.uint16)})]
    text = Reader(pages[0]).text
    assert "released by all" in text
    assert "secret" not in text
    # There are no parties, so the page does not speak of any.
    for html in pages:
        assert not re.search(r"\bpart(y|ies)\b", Reader(html).text)
        assert not re.search(r"(aria-label|data-of)=.[^>]*\bpart(y|ies)\b", html)
    assert page(Run.open(tmp_path / "run.model")).startswith("<!DOCTYPE html>")


def browsed(html, folder):
    """What a browser makes of a page: the document, what it asked of others, its complaints."""
    folder.mkdir()
    (folder / "page.html").write_text(html, encoding="utf-8")
    command = [
        str(CHROMIUM),
        *FLAGS,
        f"--user-data-dir={folder / 'profile'}",
        f"--log-net-log={folder / 'net.json'}",
        "--dump-dom",
        (folder / "page.html").as_uri(),
    ]
    run = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
    events = [
        event.get("params", {}) for event in json.loads((folder / "net.json").read_text())["events"]
    ]
    # The browser's own errands are nobody's; a page's are those of its file.
    flags = [
        event["url"]
        for event in events
        if "file://" in event.get("network_isolation_key", "") and "url" in event
    ]
    return (
        run.stdout,
        [url for url in flags if not url.startswith("file:")],
        re.findall("CONSOLE.*", run.stderr),
    )


needs_chromium = pytest.mark.skipif(
    CHROMIUM is None, reason="needs Chromium (Debian: apt-get install chromium)"
)


@pytest.mark.slow
@needs_chromium
def test_the_browser_would_tell(tmp_path):
    """Of a page that does what ours must not."""
    html = '<body><img src="http://probe.invalid/x.png"><script>console.error("oh")</script><p style="width:500px">wide</p>'
    _, asked, complaints = browsed(html, tmp_path / "other")
    assert asked == ["http://probe.invalid/x.png"]
    assert "oh" in complaints[0]
    assert measured(html, tmp_path / "wide")[1] >= 500


def measured(html, folder, width=360, within="html"):
    """Width of a frame as narrow as a phone's screen, and of a page in it with everything open.

    With ``within``, the widths by which the contents of these elements exceed them, added up to the frame's.
    """
    script = (
        "const frame = document.querySelector('iframe');"
        "frame.addEventListener('load', () => { const page = frame.contentDocument;"
        "page.querySelectorAll('details').forEach(own => own.open = true);"
        f"const all = [...page.querySelectorAll('{within}')], width = frame.contentWindow.innerWidth;"
        "const more = all.map(own => own.scrollWidth - own.clientWidth).reduce((a, b) => a + b, 0);"
        "document.title = [width, all.length ? width + more : -1].join(';'); });"
    )
    frame = f'<iframe style="width: {width}px; height: 800px; border: 0" srcdoc="{escape(html)}"></iframe>'
    dom, _, complaints = browsed(
        f"<!DOCTYPE html><title></title><body>{frame}<script>{script}</script></body>", folder
    )
    match = re.search(r"<title>(-?\d+);(-?\d+)</title>", dom)
    assert match is not None, complaints
    return int(match[1]), int(match[2])


@pytest.mark.slow
@needs_chromium
@pytest.mark.parametrize("kind", ["plain", "beside_truth"])
def test_a_browser_opens_it(kind, request, tmp_path):
    """Nothing is asked of a network, nothing is complained of, nothing is wider than a phone."""
    text = request.getfixturevalue(kind)
    dom, asked, complaints = browsed(text, tmp_path / "as it is")
    assert asked == []
    assert complaints == []
    assert 'id="ledger-table"' in dom
    assert dom.count("<svg") == text.count("<svg")
    assert "owned" not in re.findall(r"<title>(.*?)</title>", dom)[0]
    assert measured(text, tmp_path / "opened") == (360, 360)


@pytest.mark.slow
@needs_chromium
@pytest.mark.parametrize("edges", [40, pytest.param(0, marks=pytest.mark.slow)])
def test_graph_and_ledger_fit_a_phone(made, edges, tmp_path, monkeypatch):
    monkeypatch.setattr(figures, "MAX_EDGES", edges)
    html = page(made.run)
    for place in ("#graph .scroll:not(:has(table))", "#ledger .scroll"):
        assert measured(html, tmp_path / place[1:6], 390, place) == (390, 390)


def squares(matrix):
    """How many squares of a map have each shade."""
    return {
        shade: sum(map(int, re.findall(r"h(\d+)", path)))
        for shade, path in figures.shades(matrix, float(np.nanmax(matrix)))
    }


def test_more_edges_than_a_graph_has_room_for_are_a_map(made, plain, monkeypatch):
    edges = len(content(made.run).edges)
    assert "Attributes in a circle, party by party." in Reader(plain).text
    monkeypatch.setattr(figures, "MAX_EDGES", edges - 1)
    read = Reader(page(made.run))
    assert "Attributes in a circle" not in read.text
    assert "A square stands for two attributes that the model keeps together" in read.text
    assert "Pairs without a shade are not kept together" in read.text
    assert set(read.tags) <= TAGS
    drawn = figures.map_of_edges(content(made.run).edges, content(made.run).dependence)
    assert np.count_nonzero(np.tril(drawn)) == edges
    assert sum(count for shade, count in squares(drawn).items() if shade) == edges


def test_labels_that_differ_are_told_apart():
    names = [f"how_often_in_the_last_year_{i}_did_you" for i in range(30)]
    names += [f"how_often_in_the_last_year_did_you_{i}" for i in range(12)]
    names += ["short", "s" * 24, "s" * 25, "how_often_in_…"]
    for most in (13, 16, 24):
        drawn = figures.labels(names, most)
        assert len(set(drawn)) == len(names)
        assert max(map(len, drawn)) <= most
        assert drawn[42] == "short"
    assert figures.labels(["a" * 99, "b\u202e"], 24) == ["a" * 23 + "…", "b\\u202e"]


def test_every_square_of_a_map_is_explained(made):
    """A pair without a value is grey, and the words beside its map say why."""
    for truth in (None, {a: made.codes[a] for a in (0, 1, 2)}):
        html = page(made.run, truth)
        maps = re.findall(r'<figcaption>[^<]*<span class="soft">(.*?)</svg>', html, re.DOTALL)
        maps = [one for one in maps if 'class="map"' in one]
        assert len(maps) == (3 if truth is None else 5)
        for one in maps:
            assert ("stroke: var(--none)" in one) == ("Grey: " in one)
        assert ("the real tables given do not have both attributes" in html) == (truth is not None)
    # Every pair is drawn once, whatever is known of it.
    matrix = np.random.default_rng(1).random((20, 20))
    matrix[3, 2] = matrix[15, 4:9] = np.nan
    assert sum(squares(matrix).values()) == 20 * 19 / 2
    assert squares(matrix)[None] == 6


def test_of_very_many_pairs_those_measured_or_kept_together_are_compared(made, monkeypatch):
    every = content(made.run).dependence.model
    monkeypatch.setattr("vertimrf.report.content.MAX_PAIRS", 0)
    shown = content(made.run)
    few = shown.dependence.model
    wanted = {*shown.edges, *made.run.model.evidence.places}
    known = np.argwhere(np.triu(np.isfinite(few), 1))
    assert set(map(tuple, known.tolist())) == wanted
    assert len(wanted) < np.isfinite(np.triu(every, 1)).sum() - len(every)
    assert np.array_equal(few[np.isfinite(few)], every[np.isfinite(few)])
    html = page(made.run, dict(enumerate(made.codes)))
    assert "only those measured or kept together are computed" in html


def test_a_model_alone_shows_what_was_measured_of_pairs(made):
    html = page(Run.open(made.folder / "run.model"))
    assert "Dependence in the estimates" in html
    assert f"{len(made.run.model.evidence.places)} pairs of attributes were measured" in html


def test_one_quantity_has_one_figure(made, plain):
    assert contradictions(plain) == []
    rows = Figures(plain).told
    said = re.search(r"three columns together are predicted to be wrong for (.*?) of", plain)[1]
    assert rows["three columns together", "predicted"] == {said}
    # The check would tell: a sentence, and a row, with another figure.
    for more in (
        "<p>Rough for three columns together (99 %).</p>",
        "<table><tr><th>error of</th><th>predicted</th></tr>"
        "<tr><th>single columns</th><td>98 %</td></tr></table>",
    ):
        assert len(contradictions(plain.replace("</main>", more + "</main>"))) == 1


def test_values_stand_beside_what_was_released_and_beside_the_truth(made, plain):
    schema = made.run.model.schema
    (place,) = made.run.model.shapes
    fine = content(made.run).fine[place]
    name = shown(schema.names[place], 60)
    told = Figures(plain).told
    assert len(fine.common) == 3
    for cell in fine.common:
        value = f"{name} = {fine.attribute.code_text(cell)}"
        assert told[value, "released"] == {percent(fine.released[0].shares[cell])}
        assert told[value, "synthetic"] == {percent(fine.model[cell])}
    # Noise moves cumulated shares by more than twice its expectation in fewer than 3 % of columns, and this one is
    # the same for every noise of the plan's: the bound is that of all noises to 1e-5.
    assert fine.released[0].distance < 5 * fine.released[0].noise
    truth = dict(enumerate(made.codes))
    table = decode(made.codes, schema.attributes, np.random.default_rng(0))
    book = {}
    values = original_values(schema.attributes, table, made.codes, "real", book)
    beside = compared(made.run, schema.attributes, values, book)
    html = page(made.run, truth, beside=beside)
    assert contradictions(html) == []
    told, column = Figures(html).told, beside.figures["columns"][schema.names[place]]
    common = [(one["value"], one["real"], one["synthetic"]) for one in column["commonest"]]
    numbers = values[schema.names[place]]
    for value, real, rows in common:
        assert real == np.mean(numbers == value)
        assert told[f"{name} = {value:g}", "truth"] == {percent(real)}
        assert told[f"{name} = {value:g}", "the rows"] == {percent(rows)}
    assert told[f"{name} = {common[0][0]:g}", "KS"] == {percent(column["ks"])}
    known = content(made.run, truth, None, beside).apart
    for subject, key in (("three columns together", "three"), ("single columns", "column")):
        assert told[subject, "truth"] == {percent(known[key])}
    # The truth by finer cell is that of the bins of which they are parts.
    drawn = content(made.run, truth, None, beside)
    codes = schema.attributes[place]
    whole = np.bincount(
        codes.encoder("x")(pa.chunked_array([pa.array(fine.attribute.ends()[0])])),
        weights=drawn.fine[place].truth,
    )
    real = np.bincount(made.codes[place], minlength=codes.size)[: codes.present]
    assert whole == pytest.approx(real / real.sum())
    # Distances to the truth are of as many rows of the model.
    rows = beside.rows
    assert drawn.apart["three"] == tvd(made.codes[:-1], rows[:-1], schema.sizes[:-1], (3,))[3]


def test_pairs_that_the_model_lost_are_named(made, plain, monkeypatch):
    names = made.run.model.schema.names
    assert "have lost them" not in plain
    pair = next(pair for pair in made.run.model.evidence.places if pair == (2, 4))
    monkeypatch.setattr(Evidence, "dropped", [pair])
    monkeypatch.setattr(Evidence, "known", [])
    said = " × ".join(shown(names[a]) for a in pair)
    sentence = f"the model has lost them: do not read their relation from the result: {said}."
    assert sentence in " ".join(Figures(page(made.run)).sentences)


def test_pairs_that_are_known_are_named_with_their_errors(made, plain):
    run = made.run
    pair = run.model.evidence.known[0]
    said = shown(named(run.model.schema, run.model.evidence, pair))
    sentence = next(one for one in Figures(plain).sentences if "are known to depend on" in one)
    assert f": {said}" in sentence
    assert "±" in said
    number = int(sentence.split(" of ")[0].split()[-1])
    assert number == len(run.model.evidence.known)
