"""The data sets of the paper: where they come from, under which licence, and how large they are.

Nothing here reads anything; ``load_data_set`` does, and checks what it reads against this table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from adaptllm_chain.errors import InvalidInputError

HUB = "hub:"
"""How a name begins that means a data set and not a file: ``hub:squad:train``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """One part of a data set.

    Attributes:
        questions: How many rows it has at the declared revision.
        url: The upstream file, as ``read_questions`` reads it.
        for_training: Whether it is made to be trained on; the others measure, and say nothing
            about a model that has seen them.
        in_paper: How many questions Table 2 of the Adapt-LLM paper counts, if it has this split.
    """

    questions: int
    url: str
    for_training: bool = False
    in_paper: int | None = None

    @property
    def file_name(self) -> str:
        """The upstream file's name."""
        return self.url.rpartition("/")[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSet:
    """A data set as its makers publish it.

    Attributes:
        name: What ``load_data_set`` and ``hub:NAME:SPLIT`` call it.
        description: What it holds, in a few words.
        format: Its name in ``FORMATS``.
        licence: Of the texts, as far as the makers say.
        source: The page that describes it.
        splits: Its parts by name, as the hub or else the makers call them.
        hub_path: Its name on huggingface.co; ``None`` if it is not there in this form.
        hub_config: Its configuration there.
        revision: The commit there that the sizes are of; ``None`` for files without versions.
    """

    name: str
    description: str
    format: str
    licence: str
    source: str
    splits: Mapping[str, Split]
    hub_path: str | None = None
    hub_config: str | None = None
    revision: str | None = None


_DPR = "https://dl.fbaipublicfiles.com/dpr/data/retriever"
_NQ_OPEN = "https://raw.githubusercontent.com/google-research-datasets/natural-questions/master/nq_open"
_SQUAD = "https://rajpurkar.github.io/SQuAD-explorer/dataset"

_ALL = (
    DataSet(
        name="nq",
        description="Natural Questions as DPR prepared them: those whose gold passage was found",
        format="dpr",
        licence="CC BY-SA 3.0 (Natural Questions)",
        source="https://github.com/facebookresearch/DPR",
        splits={
            "train": Split(
                questions=58_880, url=f"{_DPR}/biencoder-nq-train.json.gz", for_training=True, in_paper=58_880
            ),
            "dev": Split(questions=6_515, url=f"{_DPR}/biencoder-nq-dev.json.gz"),
        },
    ),
    DataSet(
        name="nq_open",
        description="Natural Questions, open domain: all questions with short answers, no passages",
        format="nq_open",
        licence="CC BY-SA 3.0",
        source="https://github.com/google-research-datasets/natural-questions/tree/master/nq_open",
        splits={
            "train": Split(questions=87_925, url=f"{_NQ_OPEN}/NQ-open.train.jsonl", for_training=True),
            "validation": Split(questions=3_610, url=f"{_NQ_OPEN}/NQ-open.dev.jsonl"),
        },
        hub_path="google-research-datasets/nq_open",
        hub_config="nq_open",
        revision="5dd9790a83002ad084ddeb7c420dc716852c6f28",
    ),
    DataSet(
        name="squad",
        description="SQuAD v1.1: questions about Wikipedia paragraphs",
        format="squad",
        licence="CC BY-SA 4.0",
        source="https://rajpurkar.github.io/SQuAD-explorer",
        splits={
            "train": Split(questions=87_599, url=f"{_SQUAD}/train-v1.1.json", for_training=True, in_paper=87_599),
            "validation": Split(questions=10_570, url=f"{_SQUAD}/dev-v1.1.json"),
        },
        hub_path="rajpurkar/squad",
        hub_config="plain_text",
        revision="7b6d24c440a36b6815f21b70d25016731768db1f",
    ),
    DataSet(
        name="popqa",
        description="PopQA: questions about entities, with their popularity",
        format="popqa",
        licence="MIT (the repository that publishes it; the page on the hub names none)",
        source="https://github.com/AlexTMallen/adaptive-retrieval",
        splits={
            # The makers' file and the one on the hub have 14,267 rows. The 15 more that the paper
            # counts are in no version that is published.
            "test": Split(
                questions=14_267,
                url="https://raw.githubusercontent.com/AlexTMallen/adaptive-retrieval/main/data/popQA.tsv",
                in_paper=14_282,
            )
        },
        hub_path="akariasai/PopQA",
        revision="098765c79ea10a2cb19c828324e33281b8336ec0",
    ),
)

DATASETS: Mapping[str, DataSet] = {data_set.name: data_set for data_set in _ALL}
"""Every declared data set by its name."""


def find_split(name: str, split: str | None = None) -> tuple[DataSet, str]:
    """Look a data set and one of its splits up.

    Args:
        name: One of ``DATASETS``.
        split: One of its splits; may be left out if it has only one.

    Returns:
        The data set and the name of the split.

    Raises:
        InvalidInputError: There is no such data set or split, or the split must be named.
    """
    if name not in DATASETS:
        raise InvalidInputError(f"unknown data set {name!r}", expected=" or ".join(DATASETS))
    found = DATASETS[name]
    if split is None and len(found.splits) == 1:
        return found, next(iter(found.splits))
    if split is None or split not in found.splits:
        raise InvalidInputError(
            f"{name} has no split {split!r}" if split else f"{name} has several splits, and none was named",
            expected=" or ".join(found.splits),
            hint=f"{HUB}{name}:{next(iter(found.splits))}",
        )
    return found, split


def split_of_name(text: str) -> tuple[DataSet, str]:
    """Look up what ``hub:NAME:SPLIT`` means.

    Args:
        text: The name, which begins with ``HUB``.

    Returns:
        The data set and the name of the split.

    Raises:
        InvalidInputError: There is no such data set or split, or the split must be named.
    """
    name, _, split = text.removeprefix(HUB).partition(":")
    return find_split(name, split or None)
