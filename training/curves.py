"""The curves of a training run as a picture: loss and learning rate over the optimizer's steps."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from adaptllm_chain.errors import missing_extra

try:
    # Agg draws into memory: no display, and none of pyplot's global state.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
except ImportError as error:
    raise missing_extra("matplotlib", "train") from error

FILE_NAME = "curves.png"

Points = Sequence[Sequence[float]]


def draw_curves(path: Path, losses: Points, learning_rates: Points, *, title: str) -> Path:
    """Draw the curves of a run.

    The same numbers give the same bytes: the picture carries neither a date nor a version.

    Args:
        path: The PNG file to write.
        losses: Steps and the mean loss since the step before, in nats a token of the completion.
        learning_rates: Steps and the learning rate at them.
        title: What stands above.

    Returns:
        ``path``.
    """
    figure = Figure(figsize=(8, 5), layout="constrained")
    canvas = FigureCanvasAgg(figure)
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(2, 1))
    # Dots show a run of a few points, which a line alone would hide.
    style = {"marker": "." if len(losses) < _FEW else "", "linewidth": 1.5}
    above.plot(*_columns(losses), color="tab:blue", **style)
    above.set_ylabel("loss (nats a token)")
    above.set_ylim(bottom=0)
    below.plot(*_columns(learning_rates), color="tab:orange", **style)
    below.set_ylabel("learning rate")
    below.set_ylim(bottom=0)
    below.ticklabel_format(axis="y", style="sci", scilimits=(0, 0))
    below.set_xlabel("optimizer step")
    below.xaxis.get_major_locator().set_params(integer=True)
    for panel in (above, below):
        panel.grid(alpha=0.3)
    figure.suptitle(title)
    temporary = path.with_name(path.name + ".part")
    canvas.print_png(temporary, metadata={"Software": None})
    temporary.replace(path)
    return path


_FEW = 60


def _columns(points: Points) -> tuple[list[float], list[float]]:
    return [step for step, _ in points], [value for _, value in points]
