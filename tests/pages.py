"""The figures of a report's page, by what they are of, and how far its scales go."""

import re
from html.parser import HTMLParser

PROSE = ("p", "li", "caption", "figcaption")
PERCENT = r"(\d[\d.,]*) %"


class Figures(HTMLParser):
    """Reads tables, and sentences outside of them.

    Attributes:
        told: figures by subject and source, such as ("three columns together", "truth").
        sentences: texts of paragraphs, items and captions.
        scales: largest values of scales, in percent.
    """

    def __init__(self, html):
        super().__init__()
        self.told, self.sentences, self.scales = {}, [], []
        self._figure, self._rows, self._words, self._prose = "", [], [], None
        self.feed(html)
        text = " ".join(" ".join(self._words).split())
        self.scales = [float(most) for most in re.findall(rf"\b(?:0 )?to {PERCENT}", text)]

    def handle_starttag(self, tag, attrs):
        if tag == "table":
            self._rows = []
        elif tag == "tr":
            self._rows.append([])
        elif tag in ("td", "th"):
            self._rows[-1].append("")
        if tag in PROSE:
            self._prose = ""

    def handle_data(self, data):
        self._words.append(data)
        if self._prose is not None:
            self._prose += data
        elif self._rows and self._rows[-1]:
            self._rows[-1][-1] += data

    def handle_endtag(self, tag):
        if tag in PROSE and self._prose is not None:
            self.sentences.append(" ".join(self._prose.split()))
            if tag == "figcaption":
                self._figure = self._prose.strip().split("\n")[0]
            self._prose = None
        elif tag == "figure":
            self._figure = ""
        elif tag == "table":
            self._of_table()
            self._rows = []

    def _of_table(self):
        rows = [[" ".join(cell.split()) for cell in row] for row in self._rows]
        head, column = (rows or [[]])[0], ""
        for row in rows[1:]:
            column = row[0] or column
            subject = f"{column} = {row[1]}" if head[1:2] in (["value"], ["released"]) else row[0]
            if self._figure:
                subject = f"{self._figure} {'=' if head[0] == 'value' else 'from'} {row[0]}"
            for source, figure in zip(head[1:], row[1:], strict=False):
                # A ± beside a release is the release's own; columns may be several parties'.
                if re.search(r"\d", figure) and not source.startswith(
                    ("±", "to ", "○", "□", "△", "◇")
                ):
                    key = subject, source.removeprefix("in ")
                    self.told.setdefault(key, set()).add(figure)


def contradictions(html):
    """What a page says twice and differently: subjects with two figures from one source, and
    sentences on a subject with a figure that its row in a table does not have.
    """
    page = Figures(html)
    out = [f"{key}: {sorted(figures)}" for key, figures in page.told.items() if len(figures) > 1]
    subjects = {}
    for (subject, source), figures in page.told.items():
        if (subject, "predicted") in page.told and source in ("predicted", "truth"):
            subjects.setdefault(subject.removesuffix(", typical error"), set()).update(figures)
    for sentence in page.sentences:
        for subject, figures in subjects.items():
            for said in re.findall(
                rf"{re.escape(subject)}\b[^.;%±\d]*((?:± )?\d+(?:\.\d+)?(?: %)?)", sentence
            ):
                if said not in figures:
                    out.append(f"{sentence!r} says {said} of {subject}: {sorted(figures)}")
    return out
