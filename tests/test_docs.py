"""The pages for successors stay true: every module has its line, and every file that they name exists."""

import ast
import contextlib
import importlib
import importlib.util
import json
import os
import re
import shutil
import ssl
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import vertimrf
from benchmarks.results import tables

ROOT = Path(vertimrf.__file__).parents[1]
FOLDERS = ("docs", "benchmarks/results")
PAGES = [
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "README.md",
    *sorted(f"{folder}/{path.name}" for folder in FOLDERS for path in (ROOT / folder).glob("*.md")),
]
RUNNABLE = {
    "README.md": "pandas",
    "docs/adapters.md": "mbi",
    "docs/kernels.md": "numba",
    "docs/method.md": "numba",
    "docs/python.md": "pandas",
    "docs/synthesizer.md": "pandas",
}


@pytest.fixture(scope="module")
def pages():
    texts = {page: (ROOT / page) for page in PAGES}
    if not all(path.exists() for path in texts.values()) or len(texts) < 20:
        pytest.skip("installed without its pages")
    return {page: path.read_text() for page, path in texts.items()}


def test_every_module_has_a_line_in_the_list(pages):
    """The site's list of modules is made of docstrings: each begins with a sentence that says what the module does."""
    listed = subprocess.run(
        [sys.executable, ROOT / "docs" / "modules.py"], capture_output=True, text=True, check=True
    ).stdout
    lines = [line for line in listed.splitlines() if line.startswith("- ")]
    assert len(lines) == len(list(ROOT.glob("vertimrf/**/*.py")))
    for line in lines:
        assert re.fullmatch(r"- `\w+\.py`: .{8,250}[.?:]", line), f"no sentence: {line}"


@pytest.mark.parametrize("page", PAGES)
def test_files_that_pages_name_exist(pages, page):
    for name in set(re.findall(r"`([\w./-]+/[\w.-]+\.(?:py|md|toml))`", pages[page])):
        assert any((base / name).exists() for base in (ROOT, ROOT / "vertimrf")), (
            f"{page} names {name}, which is not there"
        )


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(pages, page):
    for link in re.findall(r"\]\((?!https?:)([^)#]+)(?:#[^)]*)?\)", pages[page]):
        assert ((ROOT / page).parent / link).exists(), f"{page} links to {link}"
    anchors = re.findall(r"\]\(([^)#]*)#([^)]+)\)", pages[page])
    for link, anchor in anchors:
        target = ((ROOT / page).parent / link).resolve().relative_to(ROOT) if link else Path(page)
        lines = [
            line.lstrip("# ").lower() for line in pages[str(target)].splitlines() if line[:1] == "#"
        ]
        headings = [re.sub(r"[^\w -]", "", line).replace(" ", "-") for line in lines]
        assert anchor in headings, f"{page} links to {link}#{anchor}"


def test_what_pages_call_by_name_is_there(pages):
    """`file.py` (`name`) in tables: the file defines the name."""
    for page, text in pages.items():
        for name, thing in re.findall(r"`([\w/]+\.py)` \(`([A-Za-z_]\w*)(?:\.\w+)?`", text):
            paths = [base / name for base in (ROOT, ROOT / "vertimrf") if (base / name).exists()]
            assert paths, f"{page} names {name}"
            assert re.search(rf"\b{thing}\b", paths[0].read_text()), (
                f"{page}: {name} has no {thing}"
            )


@pytest.mark.parametrize("page", RUNNABLE)
def test_the_code_of_a_page_runs(pages, page, tmp_path, monkeypatch):
    """One after the other, as a reader would run it; its own assertions are the test."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        needed = pytest.importorskip(RUNNABLE[page])
    if RUNNABLE[page] == "mbi" and not hasattr(needed.estimation, "MirrorDescent"):
        pytest.skip("mbi is not version 2")
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```", pages[page], re.DOTALL | re.MULTILINE)
    assert blocks, f"{page} has no code"
    scope = {}
    for block in blocks:
        exec(compile(block, page, "exec"), scope)


def test_the_site_builds_without_a_warning(pages, tmp_path):
    """Every page is in the navigation, every link and anchor leads somewhere, every public name has its docstring."""
    for needed in ("mkdocs", "material", "mkdocstrings"):
        pytest.importorskip(needed)
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", tmp_path / "site"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )
    assert built.returncode == 0, built.stderr
    api = (tmp_path / "site" / "api" / "index.html").read_text()
    for name in vertimrf.__all__:
        assert f'id="vertimrf.{name}"' in api, f"docs/api.md lacks {name}"
    assert (tmp_path / "site" / "source" / "examples" / "every_role.py" / "index.html").exists()


def test_every_written_table_says_what_it_was_measured_with(pages):
    """Commit, date, machine, and paths that exist; whether it is old is asked by `python benchmarks/results.py --check`."""
    written = list(tables(ROOT))
    assert len(written) == sum(
        text.count("<!-- table: ") for page, text in pages.items() if page != "CONTRIBUTING.md"
    )
    for table in written:
        assert table.commit, f"{table.page}: the table {table.name!r} has no birth line"
        assert all((ROOT / path).exists() for path in table.depends), (
            f"{table.page}: {table.name} depends on {table.depends}"
        )


def test_the_constants_page_has_the_values_of_the_code(pages):
    """A bold line names a module, and a list below it constants with their values."""
    module, compared = None, 0
    for line in pages["docs/constants.md"].splitlines():
        if of := re.fullmatch(r"\*\*`([\w/]+)\.py`\*\*", line):
            module = importlib.import_module(f"vertimrf.{of[1].replace('/', '.')}")
        elif constant := re.match(r"- `(\w+)` = (.+?): ", line):
            assert getattr(module, constant[1]) == ast.literal_eval(constant[2]), (
                f"docs/constants.md: {constant[1]}"
            )
            compared += 1
    assert compared > 30


def test_the_readme_has_lines_of_the_measured_table(pages):
    def rows(page, mark):
        table = pages[page].split(f"<!-- table: {mark} -->")[1].split("<!-- end")[0]
        return [line for line in table.splitlines() if line.startswith("|")]

    short, whole = (
        rows("README.md", "accuracy in short"),
        rows("benchmarks/results/accuracy.md", "accuracy"),
    )
    assert len(short) == 2 + 3
    assert set(short) <= set(whole)
    assert len(pages["README.md"].splitlines()) < 200


def test_the_readmes_picture_has_the_figures_of_the_measured_table(pages):
    image = pytest.importorskip("PIL.Image")
    path = ROOT / "docs" / "images" / "accuracy.py"
    spec = importlib.util.spec_from_file_location("accuracy_picture", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    figures = module.figures(pages["benchmarks/results/accuracy.md"])
    drawn = json.loads(image.open(path.with_suffix(".png")).text["Description"])
    assert drawn == json.loads(json.dumps(figures)), "run docs/images/accuracy.py"
    assert set(figures) >= {"nltcs", "adult", "br2000"}


def test_the_certificates_of_the_page_on_flower_are_good(tmp_path):
    """Its commands, under the strict rules that Python 3.13 has by default."""
    lines = re.search(
        r"^openssl.*?(?=^flower-superlink)", (ROOT / "docs/flower.md").read_text(), re.M | re.S
    )
    found = shutil.which("openssl") and subprocess.check_output(["openssl", "version"], text=True)
    if not re.match(r"OpenSSL [3-9]", found or ""):
        pytest.skip("needs OpenSSL 3")
    subprocess.run(["sh", "-ec", lines[0]], cwd=tmp_path, check=True, capture_output=True)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(tmp_path / "server.pem", tmp_path / "server.key")
    client = ssl.create_default_context(cafile=tmp_path / "ca.pem")
    client.verify_flags |= ssl.VERIFY_X509_STRICT
    for name in ("server.example", "127.0.0.1"):
        to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
        ends = [
            client.wrap_bio(to_client, to_server, server_hostname=name),
            server.wrap_bio(to_server, to_client, server_side=True),
        ]
        for end in (*ends, *ends):
            with contextlib.suppress(ssl.SSLWantReadError):
                end.do_handshake()
        assert ends[0].version() == "TLSv1.3"
