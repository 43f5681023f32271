"""A report whose every text is chosen by a test."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html.parser import HTMLParser

from hypothesis import strategies as st

from adaptllm_chain.reporting import Cell, Chart, Report, Row, Section, Series, Table

# Markup of every kind that a page knows, between words of any letters.
HOSTILE = st.sampled_from([
    "<script>alert(1)</script>", "</style>", "<!--", "-->", "]]>", "&lt;", "&#35;", '" onload="x', "http://a.b/",
    "a|b", "\\|", "\\", "{{ 7 * 7 }}", "{% raw %}", "`x`", "```", "~~~", "**b**", "_a_", "~~s~~", "$x$", "# a", "> a",
    "- a", "+ a", "1. a", "===", "---", "    x", "\t", "[a](http://a.b)", "![i](x)", "[a]: b", "arXiv:2404.19705",
    "a\nb", "a\r\n\r\nb", "\u2028",
])  # fmt: skip


def says_something(text: str) -> bool:
    return any(letter.isprintable() and not letter.isspace() for letter in text)


MIXED = st.lists(st.one_of(HOSTILE, st.text(max_size=5)), max_size=4).map("".join)
TEXT = st.one_of(HOSTILE, st.text(max_size=20), MIXED).filter(says_something)


def report_of(said: Callable[[], str]) -> Report:
    """A report with one of each thing that bears a text."""

    def cells() -> Row:
        return Row(label=Cell(text=said(), note=said()), cells=(Cell(value=0.25, unit="percent", note=said()),))

    def table(name: str) -> Table:
        return Table(
            id=name, title=word(said), caption=said(), columns=(said(), said()), rows=(cells(),), notes=(said(),)
        )

    chart = Chart(
        id="chart",
        title=word(said),
        alt=word(said),
        kind="lines",
        x_label=said(),
        y_label=said(),
        series=(Series(name=word(said)),),
        data=table("data"),
    )
    section = Section(id="s", title=word(said), paragraphs=(said(), said()), tables=(table("t"),), charts=(chart,))
    return Report(
        title=word(said), subtitle=said(), created_by=(said(),), settings={said(): said()}, sections=(section,)
    )


def word(said: Callable[[], str]) -> str:
    """A text that is not empty: a title."""
    return f"{said()}."


class Page(HTMLParser):
    """What a reader of HTML takes a page for: its elements, their attributes, its text."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.texts: list[str] = []
        self.comments = 0
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in {"meta", "path", "use"}:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if tag not in {"path", "use"}:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.texts.append(data)

    def handle_comment(self, data: str) -> None:
        self.comments += 1

    @property
    def text(self) -> str:
        return "".join(self.texts)

    @property
    def shape(self) -> list[tuple[str, list[str]]]:
        """The elements, without links to papers, which a text may make."""
        return [(tag, sorted(attributes)) for tag, attributes in self.elements if not is_paper(tag, attributes)]


def is_paper(tag: str, attributes: dict[str, str | None]) -> bool:
    return tag == "a" and str(attributes.get("href")).startswith("https://arxiv.org/abs/")


def said_in(report: Report) -> Sequence[str]:
    """All texts of a report that a page shows as they are."""
    section = report.sections[0]
    chart = section.charts[0]
    texts = [
        report.title,
        report.subtitle,
        *report.created_by,
        section.title,
        *section.paragraphs,
        chart.title,
        chart.alt,
    ]
    for name, value in report.settings.items():
        texts += [name, str(value)]
    for table in (*section.tables, chart.data):
        texts += [table.title, table.caption, *table.columns, *table.notes]
        for row in table.rows:
            texts += [str(cell.note) for cell in (row.label, *row.cells)]
            texts += [row.label.text] if row.label.text and row.label.text.strip() else []
    return texts
