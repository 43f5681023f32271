"""Answers as text for people and as JSON lines for programs."""

from __future__ import annotations

import json
import sys
import textwrap
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from langchain_core.documents import Document

from adaptllm_chain.cli.console import note
from adaptllm_chain.records import AdaptiveAnswer, Decision, RetSignal

_PASSAGE_CHARACTERS = 240
_SMALL = 0.001


@dataclass(slots=True)
class Tally:
    """What has been asked so far.

    Attributes:
        answered: Questions with an answer.
        retrieved: Those of them that were searched for.
        failed: Questions without an answer.
        seconds: Time that the answers took.
    """

    answered: int = 0
    retrieved: int = 0
    failed: int = 0
    seconds: float = 0.0

    def add(self, result: AdaptiveAnswer, seconds: float) -> None:
        """Count an answer.

        Args:
            result: The answer.
            seconds: The time that it took.
        """
        self.answered += 1
        self.retrieved += bool(result["retrieved"])
        self.seconds += seconds

    def __str__(self) -> str:
        saved = self.answered - self.retrieved
        each = self.seconds / self.answered if self.answered else 0.0
        failed = f", {self.failed} failed" if self.failed else ""
        return (
            f"{self.answered} answers: {saved} from memory, {self.retrieved} with retrieval{failed}; "
            f"{saved} of {self.answered} retrievals saved, {each:.2f} s a question"
        )


class View(ABC):
    """How answers are shown."""

    @abstractmethod
    def answer(self, result: AdaptiveAnswer, seconds: float) -> None:
        """Show an answer.

        Args:
            result: The answer.
            seconds: The time that it took.
        """

    @abstractmethod
    def stream(self, parts: Iterable[AdaptiveAnswer]) -> AdaptiveAnswer:
        """Show an answer while it comes.

        Args:
            parts: The parts.

        Returns:
            Their sum.
        """

    @abstractmethod
    def summary(self, tally: Tally) -> None:
        """Show what all answers came to.

        Args:
            tally: The counts.
        """


class TextView(View):
    """Answers for people, on stdout."""

    def answer(self, result: AdaptiveAnswer, seconds: float) -> None:
        """Show an answer.

        Args:
            result: The answer.
            seconds: The time that it took.
        """
        lines = [f"Q  {result['input']}", *_reasons(result), f"A  {result['answer']}", f"   {seconds:.2f} s", ""]
        print("\n".join(lines), flush=True)

    def stream(self, parts: Iterable[AdaptiveAnswer]) -> AdaptiveAnswer:
        """Show the decision when it is taken, then the answer as it comes.

        Args:
            parts: The parts.

        Returns:
            Their sum.
        """
        total: Any = None
        for part in parts:
            total = part if total is None else total + part
            # The chain tells the decision and the context together, and after them the answer.
            if "decision" in part:
                print("\n".join(_reasons(total)), end="\nA  ", flush=True)
            print(part.get("answer", ""), end="", flush=True)
        print("\n", flush=True)
        result: AdaptiveAnswer = total
        return result

    def summary(self, tally: Tally) -> None:
        """Show what all answers came to.

        Args:
            tally: The counts.
        """
        print(tally, flush=True)


class JsonView(View):
    """Answers for programs: one JSON object a line on stdout, and nothing else there."""

    def answer(self, result: AdaptiveAnswer, seconds: float) -> None:
        """Show an answer.

        Args:
            result: The answer.
            seconds: The time that it took.
        """
        utf8 = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
        print(json.dumps(as_row(result, seconds), ensure_ascii=not utf8), flush=True)

    def stream(self, parts: Iterable[AdaptiveAnswer]) -> AdaptiveAnswer:
        """Show nothing: a line of JSON is written when it is complete.

        Args:
            parts: The parts.

        Returns:
            Their sum.
        """
        total: Any = None
        for part in parts:
            total = part if total is None else total + part
        result: AdaptiveAnswer = total
        return result

    def summary(self, tally: Tally) -> None:
        """Show what all answers came to, on stderr.

        Args:
            tally: The counts.
        """
        note(str(tally))


def as_row(result: AdaptiveAnswer, seconds: float) -> dict[str, Any]:
    """Turn an answer into what can be written as JSON.

    Args:
        result: The answer.
        seconds: The time that it took.

    Returns:
        Its keys, and ``seconds``; what else stood in the input comes first.
    """
    decision = result["decision"]
    carried: Mapping[str, Any] = result
    return {
        **carried,
        "input": result["input"],
        "answer": result["answer"],
        "retrieved": result["retrieved"],
        "ret_probability": result["ret_probability"],
        "decision": {
            "route": decision.route,
            "rule": decision.rule,
            "reason": decision.reason,
            "threshold": decision.threshold,
            "signal": {"probability": decision.signal.probability, "kind": decision.signal.kind},
        },
        "context": [_passage_row(passage) for passage in result["context"]],
        "seconds": round(seconds, 4),
    }


def _passage_row(passage: Document) -> dict[str, Any]:
    metadata = passage.metadata
    return {
        "title": metadata.get("title"),
        "text": passage.page_content,
        "score": metadata.get("score"),
        "source": metadata.get("source"),
    }


def _reasons(result: AdaptiveAnswer) -> list[str]:
    decision = result["decision"]
    lines = [f"   {decision.route} by {decision.rule}: {decision.reason}; {_probability(decision)}"]
    return lines + [f"   passage: {_passage(passage)}" for passage in result["context"]]


def _probability(decision: Decision) -> str:
    signal: RetSignal = decision.signal
    what = "P(retrieval is needed)" if signal.kind == "judged" else "P(RET)"
    if signal.probability is None:
        return f"{what} unknown"
    sign = {"exact": "=", "judged": "=", "first_piece": "~", "upper_bound": "<="}.get(signal.kind, "~")
    digits = ".3f" if signal.probability >= _SMALL else ".0e"
    return f"{what} {sign} {signal.probability:{digits}}"


def _passage(passage: Document) -> str:
    title = str(passage.metadata.get("title") or "")
    text = " ".join(passage.page_content.split())
    # A Markdown file begins with its title.
    text = text.lstrip("# ").removeprefix(title).strip()
    score = passage.metadata.get("score")
    shown = textwrap.shorten(text, _PASSAGE_CHARACTERS, placeholder=" …")
    return f"[{title}] {shown}" + (f" (score {score:.3f})" if isinstance(score, float) else "")
