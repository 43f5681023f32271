"""What is known of the figures that AGREE reports (arXiv:2311.09533), to stand beside one's own.

The paper's tables were not at hand when this was written, and no figure here is from memory. What could be established:

* The paper compares on five data sets with two models, and finds its answers better grounded, with more accurate
  citations, than those of prompting (ICLCITE) and of citing afterwards (its abstract).
* Its authors sum that up as "often achieving relative improvements of over 30%" in grounding
  (research.google/blog/effective-large-language-model-adaptation-for-improved-grounding, 24 May 2024).
* A summary by others speaks of citation recall that is over 20 % higher (alphaxiv.org/overview/2311.09533v3).
* FineRef (AAAI 2026), Table 1, prints figures of AGREE with PaLM 2 on ASQA beside its own; it does not say whether
  they are with test-time adaptation. (CaLF, arXiv:2406.13124, compares itself with AGREE as well.)
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedGrounding:
    """What a system reaches on a data set, in per cent.

    Attributes:
        system: The system.
        model: Its model.
        data: The data set.
        source: Where the figures were read.
        em_recall: The share of the short answers of ASQA that stand in the answer (ALCE's correctness).
        citation_f1: The harmonic mean of citation recall and precision.
    """

    system: str
    model: str
    data: str
    source: str
    em_recall: float
    citation_f1: float


PUBLISHED_GROUNDING: tuple[PublishedGrounding, ...] = (
    PublishedGrounding(
        system="AGREE",
        model="PaLM 2",
        data="ASQA",
        source="as quoted in FineRef (AAAI 2026), Table 1",
        em_recall=40.9,
        citation_f1=75.1,
    ),
)

PUBLISHED_IMPROVEMENT = (
    "AGREE's authors sum up five data sets and two models as relative improvements of often over 30 % in grounding, "
    "against prompting and citing afterwards; which measure that is of, their summary does not say. Their tables were "
    "not at hand; figures that others quote stand in the table of citations."
)
