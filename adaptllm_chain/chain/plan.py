"""The algorithm, written once: one question as a plan that asks for what it needs and does no I/O.

A plan is a generator. It yields steps, and whoever drives it sends the replies:

=============  =============================================  =====================================
step           what the driver does                           reply
=============  =============================================  =====================================
``Ask``        calls the model                                the ``Opening`` of its output
``Rest``       takes what the model says from there on        nothing: it is the answer
``Search``     calls the retriever                            the passages
``Consult``    asks the policy's decision model               the ``RetSignal`` of its answer
``Announce``   tells listeners what was decided               nothing
``Tell``       adds keys to the result                        nothing
=============  =============================================  =====================================
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, cast

from langchain_core.documents import Document

from adaptllm_chain.chain.inputs import Asked, read_input
from adaptllm_chain.errors import EmptyRetrievalError, PromptMismatchError
from adaptllm_chain.prompts import PromptSpec, PromptTemplates
from adaptllm_chain.records import Decision, PromptKind, RetSignal
from adaptllm_chain.ret import RET, Evidence, Policy, Spelling, is_request, read_spelling

OnEmpty = Literal["answer", "abstain", "raise"]


@dataclass(frozen=True, slots=True)
class Ask:
    """Put a prompt to the model.

    Attributes:
        kind: Which prompt it is.
        prompt: Its text.
    """

    kind: PromptKind
    prompt: str


@dataclass(frozen=True, slots=True)
class Rest:
    """Take the output of the last ``Ask`` as the answer."""


@dataclass(frozen=True, slots=True)
class Search:
    """Search for passages.

    Attributes:
        query: What to search for.
    """

    query: str


@dataclass(frozen=True, slots=True)
class Consult:
    """Ask the policy's decision model whether a question needs retrieval.

    Attributes:
        question: The question.
    """

    question: str


@dataclass(frozen=True, slots=True)
class Announce:
    """Tell listeners what was decided, before it is acted upon.

    Attributes:
        decision: The decision.
    """

    decision: Decision


@dataclass(frozen=True, slots=True)
class Tell:
    """Add keys to the result; each key is told once.

    Attributes:
        keys: The keys and their values.
    """

    keys: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Opening:
    """The beginning of an output: as much as settles whether it leads with the marker.

    Attributes:
        text: The output so far.
        signal: What is known of the probability of the marker.
    """

    text: str
    signal: RetSignal


Step: TypeAlias = Ask | Rest | Search | Consult | Announce | Tell
Plan: TypeAlias = Generator[Step, Any, None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The settings of a chain that a plan follows.

    Attributes:
        policy: What decides.
        templates: The prompts.
        max_rounds: The most searches for one question.
        on_empty: What to do when retrieval brings nothing usable.
        abstain_text: The answer for ``on_empty="abstain"``.
        spec: What the model's adapter was trained on, if it has one.
    """

    policy: Policy
    templates: PromptTemplates
    max_rounds: int = 1
    on_empty: OnEmpty = "answer"
    abstain_text: str = ""
    spec: PromptSpec | None = None

    @property
    def marker(self) -> str:
        """How the model spells its request."""
        return self.spec.ret_marker if self.spec else RET


def plan_question(value: Any, rules: Rules) -> Plan:
    """Plan one question.

    Args:
        value: What was passed to the chain; reading it is part of the plan, so that one bad input
            of a batch fails alone.
        rules: The chain's settings.

    Yields:
        The steps.
    """
    asked = read_input(value)
    yield Tell({**asked.carried, "input": asked.question})
    opening = rules.policy.opening
    signal, spelling = RetSignal(), cast("Spelling | None", None)
    if opening is not None:
        signal, spelling = yield from _ask(opening, asked, rules)
    elif rules.policy.judge is not None:
        signal = yield Consult(asked.question)
    decision = rules.policy.decide(
        Evidence(question=asked.question, popularity=asked.popularity, spelling=spelling, signal=signal)
    )
    yield Announce(decision)
    retrieves = decision.route == "retrieve"
    # A bound is not the probability; it stays in the decision's signal, next to its kind.
    probability = None if signal.kind == "upper_bound" else signal.probability
    yield Tell({"retrieved": retrieves, "ret_probability": probability})
    if retrieves:
        yield from _answer_from_passages(asked, rules, decision)
        return
    # A threshold may overrule an output that is a request; then there is no answer in it yet.
    if spelling is None or is_request(spelling):
        yield from _answer_from_memory(asked, rules, decision)
        return
    yield Tell({"decision": decision, "context": []})
    yield Rest()


def _ask(
    kind: PromptKind, asked: Asked, rules: Rules, passages: Sequence[Document] = ()
) -> Generator[Step, Any, tuple[RetSignal, Spelling]]:
    _check_trained(kind, rules)
    opening: Opening = yield Ask(kind, rules.templates.render(kind, asked.question, passages))
    return opening.signal, read_spelling(opening.text, rules.marker)


def _check_trained(kind: PromptKind, rules: Rules) -> None:
    try:
        if rules.spec is not None:
            rules.spec.check(kind)
    except PromptMismatchError as error:
        if kind in rules.policy.needs:
            raise
        # Found only now: whether a question needs this prompt depends on the model and the passages.
        raise PromptMismatchError(
            f"{error.problem}, which this question needs: it has to be answered from memory",
            expected=error.expected,
            hint='on_empty="abstain" if retrieval brought nothing; policy=Adaptive() if a threshold overruled <RET>; '
            "or an adapter trained on closed_book rows too",
        ) from error


def _answer_from_passages(asked: Asked, rules: Rules, decision: Decision) -> Plan:
    query = asked.question
    shown: set[tuple[str, str]] = set()
    problem = ""
    for round_number in range(1, rules.max_rounds + 1):
        found: Sequence[Document] = yield Search(query)
        passages = [passage for passage in found if _key(passage) not in shown]
        if not passages:
            problem = "the search brought nothing" if round_number == 1 else "a further search brought nothing new"
            break
        shown.update(map(_key, passages))
        _, spelling = yield from _ask("context", asked, rules, passages)
        # An empty output is an empty answer here: only with the parametric prompt, which offers the
        # marker, can a request have been lost with the special tokens.
        if spelling not in ("marker", "cut_off"):
            yield Tell({"decision": decision, "context": list(passages)})
            yield Rest()
            return
        problem = f"the model still asked for retrieval after {round_number} search{'es' * (round_number > 1)}"
        # Pseudo-relevance feedback: search on with the words of the best passage so far.
        query = f"{asked.question} {passages[0].page_content}"
    yield from _fall_back(asked, rules, decision, problem)


def _fall_back(asked: Asked, rules: Rules, decision: Decision, problem: str) -> Plan:
    if rules.on_empty == "raise":
        raise EmptyRetrievalError(
            f"{decision.reason}, but {problem}: {asked.question!r}",
            expected="a search that brings a passage which the model can answer from",
            hint='on_empty="answer" or "abstain", more passages (k, max_rounds), or more documents',
        )
    if rules.on_empty == "abstain":
        yield from _abstain(rules, replace(decision, reason=f"{decision.reason}; {problem}: abstained"))
        return
    because = replace(decision, reason=f"{decision.reason}; {problem}: answered from memory")
    yield from _answer_from_memory(asked, rules, because)


def _answer_from_memory(asked: Asked, rules: Rules, decision: Decision) -> Plan:
    _, spelling = yield from _ask("closed_book", asked, rules)
    if spelling in ("marker", "cut_off"):
        # The marker must not leak, and without it nothing is left that could pass for an answer.
        problem = "the model asked for retrieval even with the closed-book prompt: abstained"
        yield from _abstain(rules, replace(decision, reason=f"{decision.reason}; {problem}"))
        return
    yield Tell({"decision": decision, "context": []})
    yield Rest()


def _abstain(rules: Rules, decision: Decision) -> Plan:
    yield Tell({"decision": decision, "context": []})
    yield Tell({"answer": rules.abstain_text})


def _key(passage: Document) -> tuple[str, str]:
    return str(passage.metadata.get("title") or ""), passage.page_content
