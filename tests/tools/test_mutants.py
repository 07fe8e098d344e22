"""Mutation testing: the list of mutations keeps up with the code, and a mutant is killed or survives as it should."""

import ast

import pytest

from tools.mutants import NAMED, PROMISING, ROOT, Field, Mutation

PACKAGE = ROOT / "vertimrf"


@pytest.mark.parametrize("mutation", NAMED, ids=lambda mutation: mutation.name)
def test_named_mutations_apply_to_the_code_as_it_is(mutation):
    """Whoever changes such a line changes the mutation with it, and sees what the line is there for."""
    text = (PACKAGE / mutation.file).read_text()
    assert mutation.apply(text) != text
    for test in mutation.chosen_tests:
        file, _, name = test.partition("::")
        assert f"def {name}" in (ROOT / "tests" / file).read_text(), test


@pytest.mark.parametrize("mutation", NAMED, ids=lambda mutation: mutation.name)
def test_a_mutation_breaks_what_the_docstrings_of_its_module_say(mutation):
    """Whoever changes such a sentence sees which mistake it excludes."""
    assert mutation.quotes((PACKAGE / mutation.file).read_text())
    assert mutation.promise or not mutation.file.startswith(PROMISING)


def test_every_module_that_promises_privacy_has_a_mutation():
    modules = {path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py")}
    promising = {name for name in modules if name.startswith(PROMISING) and "__init__" not in name}
    assert len(promising) > len(PROMISING)
    assert promising == {m.file for m in NAMED if m.file.startswith(PROMISING)}


def test_a_mutation_whose_text_is_gone_says_so():
    with pytest.raises(SystemExit, match="no longer applies"):
        Mutation("stale", "plan/plan.py", "no such text", "", "").apply(
            (PACKAGE / "plan/plan.py").read_text()
        )


@pytest.mark.parametrize(
    "laid_out",
    [
        "a = f(b, c + d) if e else 'x'\n",
        'a = (\n    f(\n        b,\n        c + d,\n    )\n    if e\n    else "x"  # why\n)\n',
        "a = f(b,\n      (c + d))  if e else 'x'\n",
    ],
)
def test_a_mutation_applies_however_the_code_is_laid_out(laid_out):
    """A formatter breaks lines, adds brackets and commas, and changes quotes."""
    for before, after, wanted in (
        ("a = f(b, c + d) if e", "a = f(b, c - d) if e", "a = f(b, c - d) if e else 'x'"),
        ("c + d", "c", "a = f(b, c) if e else 'x'"),
        ("a = f(b, c + d)\n   if e else 'x'\n", "pass", "pass"),
    ):
        mutated = Mutation("", "", before, after, "").apply(laid_out)
        assert ast.dump(ast.parse(mutated)) == ast.dump(ast.parse(wanted))


@pytest.mark.slow
def test_a_mutant_is_killed_and_a_harmless_one_survives(tmp_path):
    harmful = next(
        one for one in NAMED if one.name == "the ledger prices one sketch a key instead of two"
    )
    harmless = Mutation(
        "harmless",
        "privacy/noise.py",
        "private = False",
        "private = not True",
        "privacy/test_noise.py",
    )
    field = Field(tmp_path, 1)
    assert [field.try_out(one).killed for one in (harmful, harmless)] == [True, False]
