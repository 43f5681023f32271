"""Any LangChain chat model as a judge of entailment: it is asked, and says Yes or No."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.runnables import Runnable, RunnableConfig

from adaptllm_chain.entailment.scorer import EntailmentScorer, Pair, check_pairs
from adaptllm_chain.errors import InvalidInputError
from adaptllm_chain.ret.token_logprobs import Position, read_positions

INSTRUCTIONS = (
    "You check whether a passage supports a statement. Say Yes only if everything in the statement follows from the "
    "passage. Say No if the passage contradicts it, says nothing about it, or supports a part of it only; what you "
    "know from elsewhere does not count. Answer with one word, Yes or No."
)
# A model that thinks aloud does so between these, and answers behind them.
_THOUGHTS = re.compile(r"\A\s*<think>.*?</think>", re.DOTALL)
_FIRST_WORD = re.compile(r"\W*(yes|no)\b", re.IGNORECASE)


class JudgeScorer(EntailmentScorer):
    """Asks a chat model about each pair and reads the first word of its reply.

    Where the model reports log-probabilities, the score is P(Yes) against P(No) at the place of that word (against
    all the rest, where the other word is not among those reported); ask for them when you build the model, for
    example ``ChatOpenAI(…).bind(logprobs=True, top_logprobs=5)``. Without them it is 1 for Yes and 0 for No, so
    that AGREE's two thresholds are one. Premises are not windowed: a passage that is too long for the model is
    the model's own error.

    Args:
        model: A LangChain chat model, or a Runnable from messages to a message or a text.
        instructions: What the model is told first.
        unclear: The score of a reply that begins with neither word; ``None`` raises an error that shows the reply.
        config: Passed to the model, e.g. ``{"max_concurrency": 8}``: pairs are asked about side by side.

    Raises:
        InvalidInputError: If ``model`` is no Runnable, or ``unclear`` is no probability.
    """

    def __init__(
        self,
        model: Runnable[Any, Any],
        *,
        instructions: str = INSTRUCTIONS,
        unclear: float | None = None,
        config: RunnableConfig | None = None,
    ) -> None:
        if not isinstance(model, Runnable):
            raise InvalidInputError(
                f"the judge is a {type(model).__name__}: {model!r:.80}",
                expected="a LangChain chat model, or a Runnable from messages to a message or a text",
                hint="JudgeScorer(init_chat_model('openai:gpt-4.1-mini'))",
            )
        if unclear is not None and not 0 <= unclear <= 1:
            raise InvalidInputError(f"unclear is {unclear!r}", expected="a probability in [0, 1], or None for an error")
        self.model = model
        self.instructions = instructions
        self.unclear = unclear
        self.config = config

    def score(self, pairs: Sequence[Pair]) -> list[float]:
        """Ask about pairs, side by side.

        Args:
            pairs: Premise and hypothesis of each pair.

        Returns:
            P(Yes), one a pair, in order.

        Raises:
            InvalidInputError: If a pair is not two texts, one is blank, or a reply is neither Yes nor No and no
                score for that was given.
        """
        prompts = [self._prompt(pair) for pair in check_pairs(pairs)]
        return [self._read(reply) for reply in self.model.batch(prompts, self.config)]

    async def ascore(self, pairs: Sequence[Pair]) -> list[float]:
        """Ask about pairs, side by side, with the model's own async calls.

        Args:
            pairs: As for ``score``.

        Returns:
            As ``score``.
        """
        prompts = [self._prompt(pair) for pair in check_pairs(pairs)]
        return [self._read(reply) for reply in await self.model.abatch(prompts, self.config)]

    def _prompt(self, pair: Pair) -> list[BaseMessage]:
        premise, hypothesis = pair
        question = (
            f"Passage:\n{premise}\n\nStatement:\n{hypothesis}\n\nDoes the passage support the statement? Yes or No:"
        )
        return [SystemMessage(self.instructions), HumanMessage(question)]

    def _read(self, reply: Any) -> float:
        text = reply.text if isinstance(reply, BaseMessage) else str(reply)
        thoughts = _THOUGHTS.match(text)
        word = _FIRST_WORD.match(text, thoughts.end() if thoughts else 0)
        if word is None:
            if self.unclear is not None:
                return self.unclear
            raise InvalidInputError(
                f"the judge replied {text!r:.200}",
                expected="a reply that begins with Yes or No",
                hint="JudgeScorer(model, unclear=0.0) counts such replies as not supported; a model that thinks "
                "aloud may need more tokens",
            )
        said = word[1].casefold()
        positions = read_positions(reply.response_metadata) if isinstance(reply, AIMessage) else []
        weighed = _weigh(_from(positions, word.start(1)), said)
        return float(said == "yes") if weighed is None else weighed


def _from(positions: Sequence[Position], start: int) -> Iterator[Position]:
    """Leave out the positions whose text ends before a character of the reply: the thoughts before it."""
    end = 0
    for position in positions:
        end += len(position.token)
        if end >= start:
            yield position


def _weigh(positions: Iterable[Position], said: str) -> float | None:
    """Read P(Yes) against P(No) at the place of the word that was said; ``None`` where nothing usable was reported.

    Where the other word is not among the reported ones, all the rest of the probability counts as its: a ratio
    to nothing would make every Yes a certain one.
    """
    at = next((position for position in positions if _word(position.token) == said), None)
    if at is None:
        return None
    listed = {"yes": 0.0, "no": 0.0}
    for token, probability in at.listed.items():
        if _word(token) in listed and probability is not None:
            listed[_word(token)] += probability
    own = listed[said] or at.probability
    if own is None:
        return None
    other = listed["no" if said == "yes" else "yes"] or max(0.0, 1 - own)
    share = own / (own + other)
    return share if said == "yes" else 1 - share


def _word(token: str) -> str:
    return token.strip(' \n\t▁Ġ*".').casefold()
