"""Makes report.png from the demo's report: python docs/images/report.py [FOLDER], a folder that `vertimrf demo` has written.

Needs Chromium. Four parts of the page stand beside and below each other.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

PARTS = ("run", "graph", "attributes", "dependence")
# Pixels of a part and between parts, before all are made smaller; most bytes of the picture.
WIDTH, HEIGHT, GAP, SCALE, MOST = 880, 760, 12, 0.85, 300_000
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--force-device-scale-factor=1",
)


def main(folder: Path, out: Path) -> None:
    """Photograph the report in a folder."""
    page = (folder / "report.html").resolve().as_uri()
    size = f'width="{WIDTH}" height="{HEIGHT}"'
    frames = "".join(
        f'<iframe src="{page}#{part}" {size} style="border: 0"></iframe>' for part in PARTS
    )
    width, height = (round(SCALE * (2 * side + GAP)) for side in (WIDTH, HEIGHT))
    with tempfile.TemporaryDirectory() as temporary:
        sheet, picture = Path(temporary) / "sheet.html", Path(temporary) / "sheet.png"
        sheet.write_text(
            f'<body style="margin: 0; background: #888"><div style="display: grid; grid-template-columns: {WIDTH}px {WIDTH}px; '
            f'gap: {GAP}px; zoom: {SCALE}">{frames}</div>'
        )
        command = [
            "chromium",
            *FLAGS,
            f"--user-data-dir={temporary}/profile",
            f"--window-size={width},{height}",
        ]
        subprocess.run(
            [*command, f"--screenshot={picture}", sheet.as_uri()], check=True, capture_output=True
        )
        with Image.open(picture) as image:
            image.convert("RGB").quantize(
                256, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE
            ).save(out, optimize=True)
    assert out.stat().st_size <= MOST, f"{out} has {out.stat().st_size:,} bytes"


if __name__ == "__main__":
    main(
        Path(sys.argv[1] if len(sys.argv) > 1 else "vertimrf-demo"),
        Path(__file__).with_name("report.png"),
    )
