"""How large the project is: tokens, words, commands, the longest function and the most parameters.

    python benchmarks/size.py

It is a report. tests/test_size.py holds the figures that have a limit.

- Tokens are Python's, without comments, docstrings, line ends and indentation.
- Words are those of README.md and of the pages in docs/.
- A command is a first word after `vertimrf`: a group counts as one, however many subcommands it has.
- Functions are those of the package. The kernels, which Numba compiles, are excepted; `self` and `cls` are no parameters.
"""

import ast
import io
import sys
import tokenize
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# What is counted, and its limit if it has one.
LIMITS = {
    "tokens of vertimrf/": None,
    "tokens of tests/ and benchmarks/": None,
    "words of README.md and docs/": None,
    "commands": None,
    "lines of the longest function": 80,
    # mbi prescribes the parameters of its estimators: adapters/mbi2.py has nine, and others at most eight.
    "parameters of the function with the most": 9,
}
LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def tokens(source):
    """The tokens of a program, without layout and docstrings."""
    nodes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, DOCUMENTED)]
    docstrings = {
        node.body[0].lineno for node in nodes if ast.get_docstring(node, clean=False) is not None
    }
    depth, out = 0, []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        # Python 3.12 and later take f-strings apart; here they are one token, as before.
        ends = token.type == getattr(tokenize, "FSTRING_END", None)
        if (
            depth == 0
            and token.type not in LAYOUT
            and not (token.type == tokenize.STRING and token.start[0] in docstrings)
        ):
            out.append(token.string)
        depth += (token.type == getattr(tokenize, "FSTRING_START", None)) - ends
    return out


def functions():
    """Lines, parameters and place of every function of the package outside of kernels/."""
    for path in sorted((ROOT / "vertimrf").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef) and path.parent.name != "kernels":
                a = node.args
                named = [
                    one.arg
                    for one in (*a.posonlyargs, *a.args, *a.kwonlyargs, a.vararg, a.kwarg)
                    if one is not None
                ]
                count = len([name for name in named if name not in ("self", "cls")])
                yield (
                    node.end_lineno - node.lineno + 1,
                    count,
                    f"{path.relative_to(ROOT)}: {node.name}",
                )


def limited():
    """Every figure that has a limit, by its name in ``LIMITS``, and where it is found."""
    every = list(functions())
    longest, widest = max(every), max(every, key=lambda one: one[1])
    found = (longest[0], longest[2]), (widest[1], widest[2])
    return dict(zip([name for name, limit in LIMITS.items() if limit], found, strict=True))


def figures():
    """Every figure, by its name in ``LIMITS``, and where it is found if that is one place."""
    from vertimrf.cli import main

    def in_all(*folders):
        return sum(
            len(tokens(path.read_text()))
            for folder in folders
            for path in (ROOT / folder).rglob("*.py")
        )

    pages = (ROOT / "README.md", *(ROOT / "docs").rglob("*.md"))
    values = (
        in_all("vertimrf"),
        in_all("tests", "benchmarks"),
        sum(len(page.read_text().split()) for page in pages),
        len(main.commands),
    )
    free = [name for name, limit in LIMITS.items() if limit is None]
    return {name: (value, "") for name, value in zip(free, values, strict=True)} | limited()


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    for name, (value, where) in figures().items():
        limit = LIMITS[name]
        print(f"{value:>8,}  {name}" + f" (limit {limit}; {where})" * (limit is not None))
