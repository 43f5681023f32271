"""Citing afterwards: an answer from memory whose sentences are looked up and judged."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.documents import Document
from pydantic import Field

from adaptllm_chain.agree.answers import GroundedAnswer, told_last
from adaptllm_chain.agree.grounded import Grounder
from adaptllm_chain.agree.labelling import LINK_ABOVE, UNSUPPORTED_UP_TO, label_sentences
from adaptllm_chain.agree.passages import PASSAGES, distinct, premise_of
from adaptllm_chain.agree.prompts import GroundedPrompt
from adaptllm_chain.agree.response import response_part, sentence_texts, with_marks
from adaptllm_chain.agree.steps import Draft, Find, Weigh
from adaptllm_chain.chain.plan import Read, Step, Tell, identity
from adaptllm_chain.chain.settings import RunnableLike
from adaptllm_chain.entailment.scorer import EntailmentScorer
from adaptllm_chain.metrics.citations import CitedSentence


class PostHocAttribution(Grounder[GroundedAnswer]):
    """Answers from memory, then cites: the baseline POSTATTR (arXiv:2311.09533, after arXiv:2305.14627).

    Each sentence is searched for; it cites the passage that entails it most probably, if that is above ``link_above``.
    The marks in the answer are ours, not the model's, so a stream brings the answer in one piece.

    Args:
        llm: A LangChain LLM or chat model, or any Runnable or function that makes text of a prompt.
        retriever: A retriever, or any Runnable or function that makes ``Document`` objects of a query.
        scorer: The judge of entailment.
        link_above: What the score of the best passage must exceed.
        prompt: The prompt, without passages; by default one that asks for one to three sentences.
        k: Passages a sentence.
        stop: Texts at which an answer ends; passed on to the model, and enforced if it ignores them.
        name: The name of the chain's runs in traces.

    Attributes:
        scorer: The judge of entailment.
        link_above: What the score of the best passage must exceed.
    """

    scorer: EntailmentScorer
    link_above: float = Field(ge=UNSUPPORTED_UP_TO, le=1.0, examples=[LINK_ABOVE])

    def __init__(
        self,
        *,
        llm: RunnableLike,
        retriever: RunnableLike,
        scorer: EntailmentScorer,
        link_above: float = LINK_ABOVE,
        prompt: GroundedPrompt | None = None,
        k: int = PASSAGES,
        stop: Sequence[str] | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(
            llm=llm,
            retriever=retriever,
            prompt=GroundedPrompt.from_memory() if prompt is None else prompt,
            k=k,
            stop=stop,
            name=name,
            scorer=scorer,
            link_above=link_above,
        )

    @property
    def judge(self) -> EntailmentScorer:
        """The judge of entailment."""
        return self.scorer

    def answering(self, question: str, k: int) -> Generator[Step, Any, None]:
        """Plan the answer to one question: a model call, then one search and one judgement for all its sentences.

        Args:
            question: The question.
            k: Passages a sentence.

        Yields:
            The steps.
        """
        yield Draft("closed_book", self.prompt.render(question))
        said = yield Read()
        found = yield from attribute(sentence_texts(said), k, self.link_above)
        answer = with_marks(found.sentences) if found.sentences else response_part(said)
        yield Tell({"context": found.context, "answer": answer, **told_last(found.sentences, found.unsupported, 0)})


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribution:
    """What was found for the sentences of an answer.

    Attributes:
        sentences: The sentences and what they cite, at most one passage each.
        unsupported: Those that no passage supports.
        context: The cited passages, in the order of their numbers.
    """

    sentences: list[CitedSentence]
    unsupported: list[str]
    context: list[Document]


def attribute(sentences: Sequence[str], k: int, link_above: float = LINK_ABOVE) -> Generator[Step, Any, Attribution]:
    """Plan the search for passages that sentences can cite.

    Args:
        sentences: The sentences, without marks.
        k: Passages a sentence.
        link_above: What the score of the best passage must exceed.

    Returns:
        What was found.
    """
    if not sentences:
        return Attribution(sentences=[], unsupported=[], context=[])
    found: list[list[Document]] = yield Find(tuple(sentences), k)
    candidates = [distinct(passages)[:k] for passages in found]
    pairs = [
        (premise_of(passage), sentence)
        for sentence, passages in zip(sentences, candidates, strict=True)
        for passage in passages
    ]
    scores = iter((yield Weigh(tuple(pairs))))
    table = [[next(scores) for _ in passages] for passages in candidates]
    cited, unsupported = label_sentences(sentences, table, link_above=link_above)
    # So far a number is a place among the sentence's own passages.
    linked = [
        [passages[number - 1] for number in sentence["citations"]]
        for sentence, passages in zip(cited, candidates, strict=True)
    ]
    context = distinct(passage for passages in linked for passage in passages)
    numbers = {identity(passage): number for number, passage in enumerate(context, start=1)}
    for sentence, passages in zip(cited, linked, strict=True):
        sentence["citations"] = [numbers[identity(passage)] for passage in passages]
    return Attribution(sentences=cited, unsupported=unsupported, context=context)
