"""Pages: every text stays text, whatever it is; every picture has words and numbers."""

from __future__ import annotations

import re
from functools import partial
from itertools import cycle, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adaptllm_chain.reporting import Report, draw, render_html, render_json, render_markdown
from tests.reporting import sample
from tests.reporting.texts import TEXT, Page, is_paper, report_of, said_in

PLAIN = report_of(lambda: "plain")
# Letters are paths in a picture: one stands for all where only the page is looked at.
PICTURES = {"chart": draw(PLAIN.sections[0].charts[0])}
# The texts take turns in the places of the report.
REPORTS = st.lists(TEXT, min_size=3, max_size=7).map(lambda texts: report_of(partial(next, cycle(texts))))


@pytest.fixture(scope="module")
def full() -> Report:
    return sample.report()


@pytest.fixture(scope="module")
def page(full: Report) -> Page:
    return Page(render_html(full))


def folded(text: str) -> str:
    return " ".join(text.split())


@settings(deadline=None, max_examples=40)
@given(REPORTS)
def test_no_text_becomes_markup_in_html(report: Report) -> None:
    html = render_html(report, PICTURES)
    page, plain = Page(html), Page(render_html(PLAIN, PICTURES))
    assert page.shape == plain.shape
    assert page.comments == 0
    assert page.open == []
    shown = folded(page.text)
    for text in said_in(report):
        assert folded(text) in shown


@settings(deadline=None, max_examples=40)
@given(REPORTS)
def test_no_text_becomes_markup_in_markdown(report: Report) -> None:
    markdown_it = pytest.importorskip("markdown_it", reason="the independent reader of Markdown is not installed")
    reader = markdown_it.MarkdownIt("commonmark").enable(["table", "strikethrough"])

    def read(report: Report) -> Page:
        # <br>, <hr> and <img> stand alone.
        html = reader.render(render_markdown(report, "figures"))
        return Page(re.sub(r"<(img|br|hr)\b([^>]*?)/?>", r"<\1\2/>", html))

    page, plain = read(report), read(PLAIN)
    assert page.shape == plain.shape
    assert [tag for tag, _ in page.elements].count("table") == 2
    shown = folded(page.text)
    for text in said_in(report):
        assert folded(text) in shown


@settings(deadline=None, max_examples=40)
@given(REPORTS)
def test_rows_of_markdown_tables_have_equally_many_columns(report: Report) -> None:
    # A command stands in a block of code, where it may look like a row.
    lines = render_markdown(report.model_copy(update={"created_by": ()}), "figures").splitlines()
    rows = [line for line in lines if line.startswith("|")]
    assert len(rows) == 2 * 3
    for row in rows:
        assert len(re.findall(r"(?<!\\)(?:\\\\)*\|", row)) == 3
        assert row.endswith("|")


@settings(deadline=None, max_examples=40)
@given(REPORTS)
def test_json_is_read_back_as_an_equal_report(report: Report) -> None:
    assert Report.model_validate_json(render_json(report)) == report


def test_json_keeps_figures_as_they_are(full: Report) -> None:
    again = Report.model_validate_json(render_json(full))
    assert again == full
    assert render_json(again) == render_json(full)
    assert '"value": 0.3677' in render_json(full)


def test_the_page_needs_nothing_else(full: Report, page: Page) -> None:
    tags = {tag for tag, _ in page.elements}
    assert not tags & {"script", "link", "iframe", "object", "embed", "img", "base", "form"}
    links = [attributes["href"] for _, attributes in page.elements if "href" in attributes]
    assert {link for link in links if not str(link).startswith("#")} == {"https://arxiv.org/abs/2404.19705"}
    assert not any(name == "src" or name.startswith("on") for _, attributes in page.elements for name in attributes)
    html = render_html(full)
    assert set(re.findall(r"https?://[^\"< ]*", html)) == {"https://arxiv.org/abs/2404.19705"}
    assert "@import" not in html
    assert set(re.findall(r"url\((.)", html)) <= {"#"}


def test_ids_are_unique_and_all_that_is_referred_to_is_there(page: Page) -> None:
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    referred = [attributes["href"] for _, attributes in page.elements if "href" in attributes]
    within = {str(link)[1:] for link in referred if str(link).startswith("#")}
    within |= {str(attributes["aria-labelledby"]) for _, attributes in page.elements if "aria-labelledby" in attributes}
    within |= {name for _, attributes in page.elements for name in re.findall(r"url\(#(.*?)\)", str(attributes))}
    assert within <= set(ids)


def test_every_chart_has_words_and_numbers(full: Report, page: Page) -> None:
    pictures = [attributes for tag, attributes in page.elements if tag == "svg"]
    assert [(one["role"], one["aria-labelledby"]) for one in pictures] == [("img", f"{c.id}.alt") for c in full.charts]
    tables = [attributes["id"] for tag, attributes in page.elements if tag == "table"]
    markdown = render_markdown(full, "figures")
    for chart in full.charts:
        assert chart.alt in page.text
        assert chart.data.id in tables
        assert f"(figures/{chart.id}.png)" in markdown
    assert len([tag for tag, attributes in page.elements if tag == "details" and "open" in attributes]) == len(
        full.charts
    )


def test_the_page_can_be_walked_through(full: Report, page: Page) -> None:
    levels = [int(tag[1]) for tag, _ in page.elements if re.fullmatch("h[1-6]", tag)]
    assert levels.count(1) == 1
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    assert ("html", {"lang": "en"}) in page.elements
    tags = [tag for tag, _ in page.elements]
    assert tags.count("caption") == tags.count("table") == len(full.charts) + 2
    assert {attributes.get("scope") for tag, attributes in page.elements if tag == "th"} == {"col", "row"}
    for section in full.sections:
        assert ("a", {"href": f"#{section.id}"}) in page.elements


def test_what_is_the_papers_is_said_in_words(full: Report) -> None:
    html = render_html(full)
    row = next(line for line in html.splitlines() if "Llama-2 7B" in line)
    # Once for all to see beside the label, and to a screen reader in each of the four cells.
    assert row.count(">paper<") == 1
    assert row.count(">(paper)<") == 4
    cell = next(line for line in html.splitlines() if "other passages" in line)
    assert cell.count(">paper<") == 1
    markdown = render_markdown(full, "figures")
    assert "| Adapt-LLM, Llama-2 7B (paper) | 36.8 % | 82.3 % |" in markdown
    assert "| always retrieve (other passages) | 36.9 % (paper) |" in markdown


def test_only_papers_become_links() -> None:
    page = Page(render_html(report_of(lambda: "https://example.org arXiv:2404.19705v2"), PICTURES))
    links = [attributes["href"] for tag, attributes in page.elements if is_paper(tag, attributes)]
    assert set(links) == {"https://arxiv.org/abs/2404.19705v2"}


def test_markdown_of_a_table_by_hand() -> None:
    lines = render_markdown(report_of(lambda: "a|b"), "my figures/").splitlines()
    assert "| a\\|b | a\\|b |" in lines
    assert "| --- | ---: |" in lines
    assert "| a\\|b (a\\|b) | 25.0 % (a\\|b) |" in lines
    assert "![a\\|b.](my%20figures/chart.png)" in lines
