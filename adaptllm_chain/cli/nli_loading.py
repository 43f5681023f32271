"""Which judge of entailment a name on the command line stands for."""

from __future__ import annotations

from typing import Any

from adaptllm_chain.cli.console import note, stdout_kept_clean
from adaptllm_chain.entailment import EntailmentScorer
from adaptllm_chain.llms.embedded import EMBEDDED

# TRUE's models answer 1 or 0; all others are classifiers.
_TRUE = "true_nli"


def load_scorer(name: str, *, device: str = "auto") -> EntailmentScorer:
    """Load a judge of entailment.

    Args:
        name: ``"embedded"``, a model of TRUE (its name holds ``true_nli``), or a model for sequence classification with
            an entailment label; a folder or a name on the hub.
        device: Where it computes: ``"auto"``, or a device of torch.

    Returns:
        The scorer.
    """
    note(f"loading the judge of entailment {name}")
    with stdout_kept_clean():
        from adaptllm_chain.entailment import ClassifierScorer, TrueNliScorer, embedded_scorer

        if name == EMBEDDED:
            return embedded_scorer(device=device)
        kind: Any = TrueNliScorer if _TRUE in name.lower() else ClassifierScorer
        scorer: EntailmentScorer = kind.from_pretrained(name, device=device)
        return scorer
