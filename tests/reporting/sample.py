"""A made-up report with every kind of content, small enough to read. No figure in it was measured."""

from __future__ import annotations

from adaptllm_chain.reporting import Cell, Chart, Mark, Point, Report, Row, Section, Series, Table

MODES = ("never retrieve", "always retrieve", "Adapt-LLM", "popularity cut")
SHORT_MODES = ("never", "always", "adaptive")


def share(value: float, *, total: int | None = None, published: bool = False) -> Cell:
    interval = {} if published else {"low": 0.9 * value, "high": 0.9 * value + 0.1}
    return Cell(value=value, unit="percent", total=total, published=published, **interval)


def measured(x: float, y: float, label: str | None = None) -> Point:
    return Point(x=x, y=y, low=y - 0.03, high=y + 0.04, label=label)


def table(name: str = "accuracy") -> Table:
    ours = [
        Row(
            label=Cell(text=mode),
            cells=(share(0.2 + n / 11), share(n / 3.5, total=500), Cell(), Cell(value=0.3 * n + 0.2, unit="seconds")),
        )
        for n, mode in enumerate(MODES)
    ]
    paper = Row(
        label=Cell(text="Adapt-LLM, Llama-2 7B"),
        cells=(
            share(0.3677, published=True),
            share(0.8226, published=True),
            Cell(value=0.512, unit="number"),
            Cell(text="not reported", note="only for the whole set"),
        ),
        published=True,
    )
    mixed = Row(
        label=Cell(text="always retrieve", note="other passages"),
        cells=(
            share(0.3686, published=True),
            Cell(value=14267, unit="count"),
            Cell(value=-0.031, unit="number"),
            Cell(),
        ),
    )
    return Table(
        id=name,
        title="Accuracy by mode",
        caption="Share of 500 questions whose answer holds an accepted one (containment), with 95 % Wilson intervals.",
        columns=("mode", "accuracy", "retrieved", "area under the curve", "seconds a question"),
        rows=(*ours, paper, mixed),
        notes=("The paper's figures are those of arXiv:2404.19705, table 1.", "Seconds are of one machine."),
    )


def numbers(name: str) -> Table:
    return Table(
        id=name,
        title="Numbers",
        caption="What the chart shows.",
        columns=("popularity", "right"),
        rows=tuple(Row(label=Cell(text=str(10**n)), cells=(share(0.1 * n + 0.1),)) for n in range(4)),
    )


def bars(name: str = "bars", *, modes: tuple[str, ...] = MODES, series: int = 2) -> Chart:
    return Chart(
        id=name,
        title="Accuracy and retrieval by mode",
        alt="Adapt-LLM answers almost as many questions rightly as always retrieving does, with fewer searches.",
        kind="bars",
        x_label="mode",
        y_label="share of the questions",
        y_unit="percent",
        series=tuple(
            Series(
                name=("right", "retrieved", "right if retrieved")[index],
                points=tuple(measured(n, 0.2 + 0.09 * n + 0.13 * index, label=mode) for n, mode in enumerate(modes)),
            )
            for index in range(series)
        ),
        marks=(Mark(name="paper's Adapt-LLM", y=0.3677),),
        data=numbers(f"{name}-data"),
    )


def tradeoff(name: str = "tradeoff") -> Chart:
    steps = [n / 40 for n in range(41)]

    def curve(bend: float) -> tuple[Point, ...]:
        heights = [0.22 + 0.3 * x**bend - 0.12 * x**3 for x in steps]
        return tuple(measured(x, y) for x, y in zip(steps, heights, strict=True))

    return Chart(
        id=name,
        title="Accuracy against retrieval",
        alt="Trusting the model's own signal reaches the accuracy of always retrieving with 60 % of the searches.",
        kind="lines",
        x_label="share of the questions that retrieve",
        y_label="share of right answers",
        x_unit="percent",
        y_unit="percent",
        series=(Series(name="P(<RET>)", points=curve(0.5)), Series(name="popularity", points=curve(0.8))),
        marks=(
            Mark(name="never", x=0, y=0.22),
            Mark(name="always", x=1, y=0.4),
            Mark(name="oracle", x=0.62, y=0.52),
            Mark(name="calibrated cut", x=0.55, y=0.42),
            Mark(name="Adapt-LLM", x=0.58, y=0.427),
            Mark(name="two thirds", x=2 / 3),
        ),
        data=numbers(f"{name}-data"),
    )


def popularity(name: str = "popularity") -> Chart:
    return Chart(
        id=name,
        title="Accuracy by popularity",
        alt="What is asked about often is known from memory; what is hardly ever asked about needs a passage.",
        kind="lines",
        x_label="popularity of the subject (views a month)",
        y_label="share of right answers",
        y_unit="percent",
        x_log=True,
        series=tuple(
            Series(
                name=mode,
                points=tuple(
                    measured(x, y + 0.05 * step)
                    for x, y in [(0, 0.1), (40, 0.12), (300, 0.2), (2500, 0.31), (30000, 0.5), (400000, 0.6)]
                ),
            )
            for step, mode in enumerate(MODES)
        ),
        marks=(Mark(name="cut of the baseline", x=1200),),
        data=numbers(f"{name}-data"),
    )


def reliability(name: str = "reliability") -> Chart:
    return Chart(
        id=name,
        title="Is P(<RET>) to be believed?",
        alt="The model is surer of itself than it should be: of what it holds to be known at 90 %, 70 % is right.",
        kind="reliability",
        x_label="P(<RET>), mean of the bin",
        y_label="share of questions that needed retrieval",
        series=(
            Series(
                name="before calibration",
                points=tuple(
                    measured(x, x * 0.6 + 0.3, label=label)
                    for x, label in [(0.05, None), (0.2, None), (0.45, None), (0.7, None), (0.95, "212")]
                ),
            ),
            Series(
                name="after calibration",
                points=tuple(measured(x, x * 0.95 + 0.02) for x in (0.1, 0.3, 0.5, 0.7, 0.9)),
            ),
        ),
        data=numbers(f"{name}-data"),
    )


def report() -> Report:
    long_modes = ("Adapt-LLM with the calibrated cut", "popularity baseline of Mallen et al.", "always retrieve")
    return Report(
        title="When does a small model need to look things up?",
        subtitle="500 questions of PopQA, asked in four ways. Made up for a test, after arXiv:2404.19705.",
        created_by=(
            "adaptllm evaluate --data popqa_test_test.json --sample 500 --retriever given --out runs/popqa-500",
            "adaptllm report runs/popqa-500",
        ),
        settings={"model": "SmolLM2-135M-Instruct", "seed": 7, "sample": 500, "temperature": 0.0, "reranked": False},
        sections=(
            Section(
                id="results",
                title="What was found",
                paragraphs=(
                    "A model that answers from memory is fast; does it know when to search (arXiv:2404.19705)?",
                    "All modes were asked the same questions, with the same passages.",
                ),
                tables=(table(), table("again")),
                charts=(bars(),),
            ),
            Section(
                id="decision",
                title="How good is the decision?",
                paragraphs=("The next chart moves the threshold from one end to the other.",),
                charts=(tradeoff(), popularity(), reliability()),
            ),
            Section(
                id="names",
                title="Long names, few bars, nothing",
                charts=(
                    bars("long-names", modes=long_modes, series=3),
                    bars("few", modes=SHORT_MODES, series=1),
                    Chart(
                        id="empty",
                        title="Nothing",
                        alt="Nothing was measured here.",
                        kind="lines",
                        x_label="x",
                        y_label="y",
                        data=Table(id="empty-data", title="Nothing", caption="", columns=("x", "y")),
                    ),
                ),
            ),
        ),
    )
