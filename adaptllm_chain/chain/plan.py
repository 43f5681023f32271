"""The algorithm, written once: one question as a plan that asks for what it needs and does no I/O.

A plan is a generator. It yields steps, and whoever drives it sends the replies:

=============  =============================================  =====================================
step           what happens                                   reply
=============  =============================================  =====================================
``Ask``        the model is called                            the ``Opening`` of its output
``Rest``       what it says from there on is the answer       its text
``Read``       what it says is read, and not passed on        its text
``Search``     the retriever is called                        the passages
``Consult``    the policy's decision model is asked           the ``RetSignal`` of its answer
``Announce``   listeners are told what was decided            nothing
``Tell``       keys are added to the result                   nothing
=============  =============================================  =====================================

``Ask``, ``Search``, ``Consult`` and ``Announce`` are errands: services carry them out for many plans together (see
``services.py``). The others the driver does by itself. Another chain may have errands of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol, TypeAlias, cast

from langchain_core.documents import Document

from adaptllm_chain.chain.inputs import Asked, read_input
from adaptllm_chain.errors import EmptyRetrievalError, PromptMismatchError
from adaptllm_chain.prompts import PromptSpec, PromptTemplates
from adaptllm_chain.records import Decision, PromptKind, RetSignal
from adaptllm_chain.ret import RET, Evidence, Judge, Policy, Spelling, is_request, read_spelling

OnEmpty = Literal["answer", "abstain", "raise"]


class TextFilter(Protocol):
    """Lets a text through while it comes in pieces."""

    def push(self, chunk: str) -> str:
        """Take the next piece.

        Args:
            chunk: The piece.

        Returns:
            What is certain by now to be let through.
        """
        ...

    def finish(self) -> str:
        """Say that the text has ended.

        Returns:
            What was still held back and is let through.
        """
        ...


class Whole:
    """The filter that lets everything through."""

    def push(self, chunk: str) -> str:
        """Let a piece through.

        Args:
            chunk: The piece.

        Returns:
            The same.
        """
        return chunk

    def finish(self) -> str:
        """Say that the text has ended.

        Returns:
            Nothing: nothing was held back.
        """
        return ""


@dataclass(frozen=True, slots=True)
class Errand:
    """A step that is carried out together with those of the same kind for which other plans wait."""


@dataclass(frozen=True, slots=True)
class Ask(Errand):
    """Put a prompt to the model.

    Attributes:
        kind: Which prompt it is: a ``PromptKind``, or another chain's name for one of its own. Tags the call in traces.
        prompt: Its text.
    """

    kind: str
    prompt: str


@dataclass(frozen=True, slots=True)
class Rest:
    """Take the output of the last ``Ask`` as the answer.

    Attributes:
        shown: Makes the filter that the answer passes; the reply holds also what it keeps back.
    """

    shown: Callable[[], TextFilter] = Whole


@dataclass(frozen=True, slots=True)
class Read:
    """Read the output of the last ``Ask`` to its end, without passing it on as the answer."""


@dataclass(frozen=True, slots=True)
class Search(Errand):
    """Search for passages.

    Attributes:
        query: What to search for.
    """

    query: str


@dataclass(frozen=True, slots=True)
class Consult(Errand):
    """Ask a decision model whether a question needs retrieval.

    Attributes:
        question: The question.
        judge: The decision model and what it is asked.
    """

    question: str
    judge: Judge


@dataclass(frozen=True, slots=True)
class Announce(Errand):
    """Tell listeners what was decided, before it is acted upon.

    Attributes:
        what: The decision; in another chain, what it has to tell, as a dataclass.
    """

    what: Any


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


Step: TypeAlias = Errand | Rest | Read | Tell
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
        signal = yield Consult(asked.question, rules.policy.judge)
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
        passages = [passage for passage in found if identity(passage) not in shown]
        if not passages:
            problem = "the search brought nothing" if round_number == 1 else "a further search brought nothing new"
            break
        shown.update(map(identity, passages))
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


def identity(passage: Document) -> tuple[str, str]:
    """Say what makes a passage the same as another.

    Args:
        passage: The passage.

    Returns:
        Its title and its text.
    """
    return str(passage.metadata.get("title") or ""), passage.page_content
