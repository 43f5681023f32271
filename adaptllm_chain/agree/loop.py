"""Test-time adaptation: what a draft could not support is searched for, and the model writes again."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

from langchain_core.documents import Document
from pydantic import Field

from adaptllm_chain.agree.answers import GroundingStep, LoopedAnswer, Stopped, told_last
from adaptllm_chain.agree.grounded import ABSTAIN_TEXT, Grounder, OnEmpty
from adaptllm_chain.agree.passages import PASSAGES, fresh
from adaptllm_chain.agree.prompts import GroundedPrompt
from adaptllm_chain.agree.response import GroundedResponse, ResponseFilter, parse_response
from adaptllm_chain.agree.steps import Draft, Find, Report
from adaptllm_chain.chain.plan import Plan, Read, Rest, Step, Tell
from adaptllm_chain.chain.settings import RunnableLike

# Model calls a question: the first draft and three more. Ours; the paper's figure is not known to us.
BUDGET = 4


class GroundingLoop(Grounder[LoopedAnswer]):
    """Answers with citations, and searches on until every sentence has one (AGREE's test-time adaptation).

    After arXiv:2311.09533. The model answers from working passages. Each statement that it calls unsupported is
    searched for; if there are none, or they bring nothing new, the next results for the question are taken. The
    cited passages stay, new ones take the places of the others, and the model writes again. No passage that was shown
    and dropped comes back. It ends when every sentence cites a passage and no statement is called unsupported, when
    the model calls are used up, or when no search brings anything new.

        loop = GroundingLoop(llm=llm, retriever=retriever, budget=3)
        result = loop.invoke("When was the mill built, and by whom?")
        result["stopped"], result["calls"], result["searches"]

    The result is a ``LoopedAnswer``: the last draft, and all of them under ``steps``. A stream brings each step as it
    is done; listeners get it as the custom event ``"grounding_step"``. The answer follows; it comes piece by piece
    where it is sure to be the last draft, because the budget ends there.

    Args:
        llm: A LangChain LLM or chat model, or any Runnable or function that makes text of a prompt.
        retriever: A retriever, or any Runnable or function that makes ``Document`` objects of a query.
        prompt: The prompt; by default the one that a model is tuned on.
        k: Passages a prompt. Where all of them are cited and something is still missing, one more is shown.
        on_empty: What to do when the first search brings nothing: ``"abstain"`` or ``"raise"``.
        abstain_text: The answer when abstaining.
        stop: Texts at which an answer ends; passed on to the model, and enforced if it ignores them.
        budget: The most model calls for one question.
        name: The name of the chain's runs in traces.

    Attributes:
        budget: The most model calls for one question.
    """

    budget: int = Field(ge=1, examples=[BUDGET])

    def __init__(
        self,
        *,
        llm: RunnableLike,
        retriever: RunnableLike,
        prompt: GroundedPrompt | None = None,
        k: int = PASSAGES,
        on_empty: OnEmpty = "abstain",
        abstain_text: str = ABSTAIN_TEXT,
        stop: Sequence[str] | None = None,
        budget: int = BUDGET,
        name: str | None = None,
    ) -> None:
        super().__init__(
            llm=llm,
            retriever=retriever,
            prompt=prompt,
            k=k,
            on_empty=on_empty,
            abstain_text=abstain_text,
            stop=stop,
            name=name,
            budget=budget,
        )

    @property
    def OutputType(self) -> Any:  # noqa: N802
        """The keys of the result."""
        return LoopedAnswer

    def answering(self, question: str, k: int) -> Plan:
        """Plan the answer to one question.

        Args:
            question: The question.
            k: Passages a prompt.

        Yields:
            The steps.
        """
        working = fresh((yield Find((question,), k)))[:k]
        searches = 1
        if not working:
            yield from self._nothing_found(question)
            yield Tell({"steps": [], "stopped": "nothing_new", "calls": 0, "searches": searches})
            return
        shown: list[Document] = []
        steps: list[GroundingStep] = []
        stopped: Stopped | None = None
        while stopped is None:
            shown += working
            last = len(steps) + 1 == self.budget
            response = yield from self._draft(question, working, last=last)
            queries: list[str] = []
            new: list[Document] = []
            if response.supported:
                stopped = "supported"
            elif last:
                stopped = "budget"
            else:
                queries, new = yield from _search_on(question, response.unsupported, shown, k)
                searches += len(queries)
                stopped = None if new else "nothing_new"
            step = GroundingStep(
                call=len(steps) + 1,
                context=working,
                answer=response.answer,
                unsupported=response.unsupported,
                queries=queries,
                new=len(new),
            )
            steps.append(step)
            yield Report(step)
            yield Tell({"step": step})
            if stopped is None:
                working = _next_passages(working, response.cited, new, k)
        if not last:
            yield Tell({"context": working, "answer": response.answer})
        yield Tell(told_last(response.sentences, response.unsupported, response.rejected))
        yield Tell({"steps": steps, "stopped": stopped, "calls": len(steps), "searches": searches})

    def _draft(
        self, question: str, working: Sequence[Document], *, last: bool
    ) -> Generator[Step, Any, GroundedResponse]:
        if last:
            yield Tell({"context": list(working)})
        yield Draft("grounded", self.prompt.render(question, working))
        said = yield Rest(ResponseFilter) if last else Read()
        return parse_response(said, len(working))


def _search_on(
    question: str, unsupported: Sequence[str], shown: Sequence[Document], k: int
) -> Generator[Step, Any, tuple[list[str], list[Document]]]:
    """Search for what is unsupported, else for the question; what was searched for, and what is new."""
    queries = list(unsupported)
    if queries:
        new = fresh((yield Find(tuple(queries), k)), shown)
        if new:
            return queries, new
    # The next results for the question are those behind what was shown already.
    found = yield Find((question,), k + len(shown))
    return [*queries, question], fresh(found, shown)


def _next_passages(
    working: Sequence[Document], cited: Sequence[int], new: Sequence[Document], k: int
) -> list[Document]:
    kept = [working[number - 1] for number in cited]
    return kept + list(new[: max(k - len(kept), 1)])
