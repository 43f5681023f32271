"""Counting what became of statements whose right marks are known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from pydantic import BaseModel, ConfigDict

from adaptllm_chain.evaluation.grounding.controlled import ControlledPrediction
from adaptllm_chain.evaluation.grounding.extractive import Statement
from adaptllm_chain.evaluation.grounding.prediction import GroundedPrediction, ShownPassage
from adaptllm_chain.metrics.citations import CitedSentence, without_marks


class KnownMarks(BaseModel):
    """Counts of the statements of one question, or sums of them.

    Attributes:
        copied: Statements that stand in a passage that was shown.
        swapped: Statements that no passage supports.
        withheld: Statements that stand in a passage that was not shown.
        written: Of all, those whose mark, or whose being named as unsupported, was read as the writer meant it.
        linked: Of the copied, those that the judge links to a passage in which they stand.
        mislinked: Of the copied, those that it links to another passage.
        doubted: Of the copied, those that it names as unsupported.
        fooled: Of the swapped and withheld, those that it links to a passage that was shown.
        named: Of the swapped and withheld, those that it names as unsupported.
        attributed: Of the copied and withheld, those that search and judge together give the right passage.
        misattributed: Of the copied and withheld, those that they give another.
        swapped_attributed: Of the swapped, those that they give any.
        retrieved: Of the withheld, those that the loop brought the passage of, and cites it for.
        kept: Of the copied, those that still cite the right passage when the loop ends.
        left: Of the swapped, those that are still named as unsupported when the loop ends.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    copied: int = 0
    swapped: int = 0
    withheld: int = 0
    written: int = 0
    linked: int = 0
    mislinked: int = 0
    doubted: int = 0
    fooled: int = 0
    named: int = 0
    attributed: int = 0
    misattributed: int = 0
    swapped_attributed: int = 0
    retrieved: int = 0
    kept: int = 0
    left: int = 0

    @property
    def statements(self) -> int:
        """How many statements there were."""
        return self.copied + self.swapped + self.withheld

    def __add__(self, other: Self) -> Self:
        ours, theirs = self.model_dump(), other.model_dump()
        return type(self)(**{name: count + theirs[name] for name, count in ours.items()})

    @classmethod
    def of(cls, prediction: ControlledPrediction) -> Self:
        """Count what became of the statements of one question.

        Args:
            prediction: The answers that they came to.

        Returns:
            The counts.
        """
        return sum((cls._counted(prediction, statement) for statement in prediction.statements), cls())

    @classmethod
    def _counted(cls, row: ControlledPrediction, statement: Statement) -> Self:
        text = statement.text
        copied, swapped, withheld = (statement.kind == name for name in ("copied", "swapped", "withheld"))
        as_written, as_judged = _Fate(text, row.written), _Fate(text, row.written, row.labelled)
        afterwards, in_the_end = _Fate(text, row.attributed), _Fate(text, row.looped)
        return cls(
            copied=copied,
            swapped=swapped,
            withheld=withheld,
            written=as_written.right if copied else as_written.uncited and text in row.written.unsupported,
            linked=copied and as_judged.right,
            mislinked=copied and as_judged.wrong,
            doubted=copied and text in row.named,
            fooled=not copied and not as_judged.uncited,
            named=not copied and text in row.named,
            attributed=not swapped and afterwards.right,
            misattributed=not swapped and afterwards.wrong,
            swapped_attributed=swapped and not afterwards.uncited,
            retrieved=withheld and in_the_end.right,
            kept=copied and in_the_end.right,
            left=swapped and in_the_end.uncited and text in row.looped.unsupported,
        )


class _Fate:
    """What a statement cites in an answer, against the passages in which it stands.

    Args:
        text: The statement.
        answer: The answer.
        sentences: Its sentences, if not as the answer has them.
    """

    def __init__(self, text: str, answer: GroundedPrediction, sentences: Sequence[CitedSentence] | None = None) -> None:
        said = answer.sentences if sentences is None else sentences
        cited = next((one["citations"] for one in said if one["sentence"] == text), None)
        passages = [answer.passages[number - 1] for number in cited or ()]
        self.uncited = cited == []
        self.right = bool(passages) and all(_holds(passage, text) for passage in passages)
        self.wrong = bool(passages) and not self.right


def _holds(passage: ShownPassage, text: str) -> bool:
    return text in " ".join(without_marks(passage.premise).split())
