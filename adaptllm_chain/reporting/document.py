"""What a report is made of: tables, charts and words, with nothing said about how they look."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, model_validator

from adaptllm_chain.errors import InvalidInputError

Unit = Literal["percent", "number", "count", "seconds", "none"]

# Control characters, halves of characters, and the breaks of lines and paragraphs.
_UNPRINTABLE = {"Cc", "Cs", "Zl", "Zp"}
# An identifier names an anchor of the page and a file, also where file names know no case.
_IDENTIFIER = re.compile(r"[a-z0-9][a-z0-9_-]*")


def _one_line(text: str) -> str:
    return "".join(" " if unicodedata.category(letter) in _UNPRINTABLE else letter for letter in text)


def _said(text: str) -> str:
    if not text.strip():
        raise InvalidInputError("a title, a name or an alternative text is empty", expected="words")
    return text.strip()


def _identifier(text: str) -> str:
    if not _IDENTIFIER.fullmatch(text):
        raise InvalidInputError(
            f"the identifier {text!r} cannot name a file and a place on a page",
            expected="small letters, digits, '-' and '_', a letter or digit first",
        )
    return text


def _by_name(settings: dict[str, Setting]) -> dict[str, Setting]:
    return dict(sorted(settings.items()))


Text = Annotated[str, AfterValidator(_one_line)]
Said = Annotated[Text, AfterValidator(_said)]
Setting = bool | int | float | Text
Identifier = Annotated[str, AfterValidator(_identifier)]


class _Part(BaseModel):
    """Part of a report. Its texts are plain text: whatever would break a line in them becomes a space."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


def _check_interval(low: float | None, high: float | None) -> None:
    if (low is None) != (high is None) or (low is not None and high is not None and low > high):
        raise InvalidInputError(f"the interval is [{low}, {high}]", expected="both ends, the lower one first, or none")


class Cell(_Part):
    """One cell of a table.

    Attributes:
        value: The figure; a share, in [0, 1], where the unit is per cent.
        low: Lower end of its interval, in the same unit.
        high: Upper end of its interval.
        text: Words that stand in the place of the figure.
        unit: How the figure is written.
        count: How many the figure counts.
        total: Of how many.
        published: The figure is the paper's, not ours; it is marked as such.
        note: A remark on this cell.
    """

    value: float | int | None = None
    low: float | None = None
    high: float | None = None
    text: Text | None = None
    unit: Unit = "none"
    count: int | None = None
    total: int | None = None
    published: bool = False
    note: Text | None = None

    @model_validator(mode="after")
    def _whole(self) -> Self:
        _check_interval(self.low, self.high)
        return self


class Row(_Part):
    """One row of a table.

    Attributes:
        label: What the row is about.
        cells: One for each further column.
        published: The whole row is the paper's.
    """

    label: Cell
    cells: tuple[Cell, ...] = ()
    published: bool = False


class Table(_Part):
    """A table.

    Attributes:
        id: Its place on the page; unique in a report.
        title: Its name.
        caption: What was measured, on how many questions, by which metric.
        columns: The names of the columns, that of the labels first.
        rows: The rows.
        notes: Remarks below the table.

    Raises:
        InvalidInputError: If a row has more or fewer cells than there are columns.
    """

    id: Identifier
    title: Said
    caption: Text
    columns: tuple[Text, ...]
    rows: tuple[Row, ...] = ()
    notes: tuple[Text, ...] = ()

    @model_validator(mode="after")
    def _rectangular(self) -> Self:
        if not self.columns:
            raise InvalidInputError(f"the table {self.id!r} has no columns", expected="at least that of the labels")
        for number, row in enumerate(self.rows, start=1):
            if 1 + len(row.cells) != len(self.columns):
                raise InvalidInputError(
                    f"row {number} of the table {self.id!r} has a label and {len(row.cells)} cells",
                    expected=f"a label and {len(self.columns) - 1} cells, for the columns {', '.join(self.columns)}",
                )
        return self


class Point(_Part):
    """A point of a series.

    Attributes:
        x: Where it stands; for bars, the order of the categories.
        y: Its height.
        low: Lower end of the interval of y.
        high: Upper end of the interval of y.
        label: The name of the category for bars; otherwise what is written beside the point.
    """

    x: float
    y: float
    low: float | None = None
    high: float | None = None
    label: Text | None = None

    @model_validator(mode="after")
    def _whole(self) -> Self:
        _check_interval(self.low, self.high)
        return self


class Series(_Part):
    """Points that belong together.

    Attributes:
        name: What the legend calls them.
        points: The points, in the order of the line.
    """

    name: Said
    points: tuple[Point, ...] = ()


class Mark(_Part):
    """A named place in a chart: a point, or a line across it where one coordinate is left out.

    Attributes:
        name: What is written beside it.
        x: Where; ``None`` for a horizontal line at y.
        y: Where; ``None`` for a vertical line at x.

    Raises:
        InvalidInputError: If it has neither coordinate.
    """

    name: Said
    x: float | None = None
    y: float | None = None

    @model_validator(mode="after")
    def _somewhere(self) -> Self:
        if self.x is None and self.y is None:
            raise InvalidInputError(f"the mark {self.name!r} has no place", expected="x, y or both")
        return self


class Chart(_Part):
    """A chart, with the table of its numbers.

    Attributes:
        id: Its place on the page and the name of its files; unique in a report.
        title: Its name.
        alt: Its finding in a full sentence, for those who do not see it.
        kind: ``"bars"`` in categories, ``"lines"``, or ``"reliability"``: what was predicted against what came true,
            both in [0, 1], with the diagonal on which they agree.
        x_label: What the x axis shows.
        y_label: What the y axis shows.
        x_unit: How numbers on the x axis are written.
        y_unit: How numbers on the y axis are written.
        x_log: Whether the x axis is logarithmic; x = 0 keeps a place of its own left of the smallest decade.
        series: The series.
        marks: Named places; bars take horizontal lines only.
        data: The numbers of the chart as a table.

    Raises:
        InvalidInputError: If the kind cannot have the axis, the marks or the points.
    """

    id: Identifier
    title: Said
    alt: Said
    kind: Literal["bars", "lines", "reliability"]
    x_label: Text
    y_label: Text
    x_unit: Unit = "number"
    y_unit: Unit = "number"
    x_log: bool = False
    series: tuple[Series, ...] = ()
    marks: tuple[Mark, ...] = ()
    data: Table

    @model_validator(mode="after")
    def _drawable(self) -> Self:
        if self.x_log and self.kind != "lines":
            raise InvalidInputError(
                f"the chart {self.id!r} has {self.kind} on a logarithmic axis",
                expected="x_log with kind='lines' only",
            )
        if self.kind == "bars" and any(mark.x is not None for mark in self.marks):
            raise InvalidInputError(
                f"a mark of the chart {self.id!r} has an x, and bars stand in categories",
                expected="marks with y alone, drawn as lines across the bars",
            )
        points = [point for series in self.series for point in series.points]
        across = [point.x for point in points] + [mark.x for mark in self.marks if mark.x is not None]
        if self.x_log and any(x < 0 for x in across):
            raise InvalidInputError(f"the chart {self.id!r} has a negative x on a logarithmic axis", expected="x >= 0")
        upwards = [point.y for point in points] + [mark.y for mark in self.marks if mark.y is not None]
        if self.kind == "reliability" and not all(0 <= share <= 1 for share in across + upwards):
            raise InvalidInputError(
                f"the chart {self.id!r} has a point outside the square of a reliability diagram",
                expected="x and y in [0, 1]",
            )
        return self


class Section(_Part):
    """A part of a report with a heading.

    Attributes:
        id: Its place on the page; unique in a report.
        title: Its heading.
        paragraphs: Plain text; ``arXiv:2404.19705`` becomes a link.
        tables: Its tables.
        charts: Its charts, shown before the tables.
    """

    id: Identifier
    title: Said
    paragraphs: tuple[Text, ...] = ()
    tables: tuple[Table, ...] = ()
    charts: tuple[Chart, ...] = ()


class Report(_Part):
    """A finished report.

    Attributes:
        title: Its title.
        subtitle: What stands below the title.
        created_by: The command lines that make it again.
        settings: What the figures depend on; kept in the order of the names, so that equal reports look alike.
        sections: Its sections.

    Raises:
        InvalidInputError: If two parts have the same id.
    """

    title: Said
    subtitle: Text = ""
    created_by: tuple[Text, ...] = ()
    settings: Annotated[dict[Text, Setting], AfterValidator(_by_name)] = {}
    sections: tuple[Section, ...] = ()

    @model_validator(mode="after")
    def _unique(self) -> Self:
        times = Counter(self._identifiers())
        twice = [identifier for identifier, number in times.items() if number > 1]
        if twice:
            raise InvalidInputError(
                f"more than one part of the report has the id {', '.join(map(repr, twice))}",
                expected="one id a part: of all sections, tables, charts and tables of charts",
            )
        return self

    def _identifiers(self) -> Iterator[str]:
        for section in self.sections:
            yield section.id
            yield from (table.id for table in section.tables)
            for chart in section.charts:
                yield from (chart.id, chart.data.id)

    @property
    def charts(self) -> tuple[Chart, ...]:
        """All charts, in order."""
        return tuple(chart for section in self.sections for chart in section.charts)
