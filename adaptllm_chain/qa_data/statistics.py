"""What the paper's Table 2 says of a data set, and a little more, for any questions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from adaptllm_chain.qa_data.many import question_key
from adaptllm_chain.records import Question


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """Figures of a set of questions. Words are what white space separates.

    Attributes:
        questions: How many there are.
        words_per_question: Mean, over the questions.
        words_per_answer: Mean over all accepted answers of all questions, each counted once. The
            paper does not say which answers its own figure is of.
        words_per_first_answer: Mean over the first accepted answer of each question, which is the
            one that Algorithm 1 trains on.
        answers_per_question: Mean number of accepted answers.
        gold_passages: The share of questions with a gold passage, in [0, 1].
        given_passages: The share with passages that some retriever found before.
        popularities: The share whose subject's popularity is known.
        duplicates: Questions that ask the same as an earlier one, by ``question_key``.
    """

    questions: int
    words_per_question: float
    words_per_answer: float
    words_per_first_answer: float
    answers_per_question: float
    gold_passages: float
    given_passages: float
    popularities: float
    duplicates: int


@dataclass(slots=True)
class Tally:
    """Counts questions one by one, so that no file need be in memory."""

    questions: int = 0
    question_words: int = 0
    answers: int = 0
    answer_words: int = 0
    first_answer_words: int = 0
    gold_passages: int = 0
    given_passages: int = 0
    popularities: int = 0
    keys: set[str] = field(default_factory=set)

    def add(self, question: Question) -> None:
        """Count one question.

        Args:
            question: The question.
        """
        words = [len(answer.split()) for answer in question.answers]
        self.questions += 1
        self.question_words += len(question.text.split())
        self.answers += len(words)
        self.answer_words += sum(words)
        self.first_answer_words += words[0]
        self.gold_passages += question.gold_passage is not None
        self.given_passages += bool(question.given_passages)
        self.popularities += question.popularity is not None
        self.keys.add(question_key(question.text))

    def statistics(self) -> Statistics:
        """Make the figures of what was counted so far.

        Returns:
            The figures; all means and shares are 0 if nothing was counted.
        """
        questions, answers = max(self.questions, 1), max(self.answers, 1)
        return Statistics(
            questions=self.questions,
            words_per_question=self.question_words / questions,
            words_per_answer=self.answer_words / answers,
            words_per_first_answer=self.first_answer_words / questions,
            answers_per_question=self.answers / questions,
            gold_passages=self.gold_passages / questions,
            given_passages=self.given_passages / questions,
            popularities=self.popularities / questions,
            duplicates=self.questions - len(self.keys),
        )


def describe(questions: Iterable[Question]) -> Statistics:
    """Compute the figures of some questions.

    Args:
        questions: The questions; gone through once.

    Returns:
        The figures.
    """
    tally = Tally()
    for question in questions:
        tally.add(question)
    return tally.statistics()
