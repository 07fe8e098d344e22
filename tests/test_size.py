"""The project does not grow: every figure of benchmarks/size.py stays at or below its ceiling there."""

import pytest

from benchmarks.size import CEILINGS, ROOT, figures, tokens


@pytest.mark.skipif(not (ROOT / "docs").is_dir(), reason="installed without its pages")
def test_every_figure_is_below_its_ceiling():
    for name, (value, where) in figures().items():
        assert value <= CEILINGS[name][0], f"{name}: {where}"


def test_layout_comments_and_docstrings_are_no_tokens():
    source = '"""Words."""\n\ndef f(a):  # so\n    """More."""\n    return "a",  "b"\n'
    assert tokens(source) == ["def", "f", "(", "a", ")", ":", "return", '"a"', ",", '"b"']
