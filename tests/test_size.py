"""Functions stay short: figures of benchmarks/size.py that have a limit keep it."""

import pytest

from benchmarks.size import LIMITS, ROOT, limited, tokens


@pytest.mark.skipif(not (ROOT / "docs").is_dir(), reason="installed without its pages")
def test_figures_keep_their_limits():
    for name, (value, where) in limited().items():
        assert value <= LIMITS[name], f"{name}: {where}"


def test_layout_comments_and_docstrings_are_no_tokens():
    source = '"""Words."""\n\ndef f(a):  # so\n    """More."""\n    return "a",  "b"\n'
    assert tokens(source) == ["def", "f", "(", "a", ")", ":", "return", '"a"', ",", '"b"']
