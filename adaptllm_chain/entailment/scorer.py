"""What every judge of entailment can be asked: how probable is it that a premise entails a hypothesis?"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from langchain_core.runnables.config import run_in_executor

from adaptllm_chain.errors import InvalidInputError

# A premise, as a rule a passage, and a hypothesis, as a rule one sentence of an answer.
Pair = tuple[str, str]


class EntailmentScorer(ABC):
    """Says how probable it is that a passage supports a statement, in the sense of AGREE (arXiv:2311.09533, section 3).

    A score is the model's own belief, not a frequency: scores of two scorers do not compare. A premise that is
    longer than a model reads is judged in overlapping windows, and the best window counts; evidence that is
    spread over windows is therefore missed. Put a passage's title on a line before its text, or a sentence that
    says "he" or "the film" has nothing to refer to.
    """

    @abstractmethod
    def score(self, pairs: Sequence[Pair]) -> list[float]:
        """Score pairs, in batches where the model can.

        Args:
            pairs: Premise and hypothesis of each pair, in this order; none may be blank.

        Returns:
            P(the premise entails the hypothesis) in [0, 1], one a pair, in the order of ``pairs``.

        Raises:
            InvalidInputError: If a pair is not two texts, one of them is blank, or a hypothesis is too long
                for the model.
        """

    async def ascore(self, pairs: Sequence[Pair]) -> list[float]:
        """Score pairs in a thread, so that the event loop goes on.

        Args:
            pairs: As for ``score``.

        Returns:
            As ``score``.
        """
        return await run_in_executor(None, self.score, pairs)


def check_pairs(pairs: Sequence[Pair]) -> list[Pair]:
    """Make sure that what is to be scored can be.

    Args:
        pairs: Premises and hypotheses.

    Returns:
        The pairs.

    Raises:
        InvalidInputError: If a pair is not two texts, or one of them is blank.
    """
    for place, pair in enumerate(pairs):
        if not (isinstance(pair, (tuple, list)) and len(pair) == 2 and all(isinstance(text, str) for text in pair)):
            raise InvalidInputError(
                f"pair {place} is {pair!r:.120}",
                expected="a premise and a hypothesis, both texts",
                hint="(passage, sentence)",
            )
        if not all(text.strip() for text in pair):
            raise InvalidInputError(
                f"pair {place} has a blank {'hypothesis' if pair[0].strip() else 'premise'}: {pair!r:.120}",
                expected="words in both: whether nothing entails something is no question for a model",
            )
    return [(premise, hypothesis) for premise, hypothesis in pairs]
