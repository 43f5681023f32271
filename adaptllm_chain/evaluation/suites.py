"""The experiments that a paper's evidence consists of, declared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

THREE_MODES = ("never_retrieve", "always_retrieve", "adaptive")
READING = ("always_retrieve", "adaptive")
# AGREE's systems, and the writer whose right marks are known.
GROUNDED = ("in_context", "post_hoc", "agree", "agree_adapted", "extractive")


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """One experiment of a suite.

    Attributes:
        data: Which of the suite's data sets is asked.
        retriever: Where the passages come from: those that the file says were found, gold ones, or an index.
        modes: The modes, or the systems.
        k: Passages a question.
    """

    data: str
    retriever: Literal["given", "gold", "index"]
    modes: tuple[str, ...]
    k: int = 1

    @property
    def folder(self) -> str:
        """How the folder of its predictions is called."""
        return f"{self.data}-{self.retriever}-k{self.k}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """What a paper measured.

    Attributes:
        source: The paper.
        data: Its data sets: the name on the command line, and the name in tables.
        experiments: In the order in which they are run.
    """

    source: str
    data: Mapping[str, str]
    experiments: tuple[Planned, ...]


PAPER = Suite(
    source="arXiv:2404.19705",
    data={"popqa": "PopQA", "nq_dev": "NQ dev", "squad_dev": "SQuAD dev"},
    experiments=(
        # Tables 1, 3 and 5, Figure 2.
        Planned(data="popqa", retriever="given", modes=THREE_MODES),
        # Table 4.
        Planned(data="nq_dev", retriever="gold", modes=READING),
        Planned(data="nq_dev", retriever="given", modes=READING),
        Planned(data="squad_dev", retriever="gold", modes=READING),
        # The same with a search of one's own, and with several passages, which the paper recommends in section 4.6.
        Planned(data="nq_dev", retriever="index", modes=READING),
        Planned(data="squad_dev", retriever="index", modes=READING),
        Planned(data="nq_dev", retriever="index", modes=READING, k=3),
        Planned(data="nq_dev", retriever="index", modes=READING, k=5),
        Planned(data="popqa", retriever="index", modes=THREE_MODES),
    ),
)

AGREE = Suite(
    source="arXiv:2311.09533",
    data={"nq": "NQ", "squad": "SQuAD", "popqa": "PopQA"},
    experiments=tuple(Planned(data=name, retriever="index", modes=GROUNDED, k=5) for name in ("nq", "squad", "popqa")),
)

SUITES = {"paper": PAPER, "agree": AGREE}
