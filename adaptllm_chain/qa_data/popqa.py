"""PopQA's own table (Mallen et al. 2023, github.com/AlexTMallen/adaptive-retrieval)."""

from __future__ import annotations

import re

from adaptllm_chain.qa_data.fields import answers_field, number_field, text_field, without
from adaptllm_chain.qa_data.rows import Row
from adaptllm_chain.records import Question

_USED = ("id", "question", "possible_answers", "prop", "s_pop")

# PopQA asks about each relation in one wording, around the name of the subject (Mallen et al. 2023, section 3).
_WORDINGS = {
    "occupation": ("What is ", "'s occupation?"),
    "place of birth": ("In what city was ", " born?"),
    "genre": ("What genre is ", "?"),
    "father": ("Who is the father of ", "?"),
    "country": ("In what country is ", "?"),
    "producer": ("Who was the producer of ", "?"),
    "director": ("Who was the director of ", "?"),
    "capital of": ("What is ", " the capital of?"),
    "screenwriter": ("Who was the screenwriter for ", "?"),
    "composer": ("Who was the composer of ", "?"),
    "color": ("What color is ", "?"),
    "religion": ("What is the religion of ", "?"),
    "sport": ("What sport does ", " play?"),
    "author": ("Who is the author of ", "?"),
    "mother": ("Who is the mother of ", "?"),
    "capital": ("What is the capital of ", "?"),
}
_RELATION = re.compile(
    "|".join(
        f"(?P<{name.replace(' ', '_')}>{re.escape(head)}.+{re.escape(tail)})"
        for name, (head, tail) in _WORDINGS.items()
    ),
    re.DOTALL,
)


def relation_of(question: str) -> str | None:
    """Tell PopQA's relation from the wording of a question, for copies of PopQA that leave ``prop`` out.

    Args:
        question: The question.

    Returns:
        The name that PopQA's ``prop`` has for it; ``None`` for a question in other words.
    """
    found = _RELATION.fullmatch(question)
    return None if found is None or found.lastgroup is None else found.lastgroup.replace("_", " ")


def parse_popqa(row: Row) -> Question:
    """Read one line of PopQA's TSV.

    Args:
        row: The line; ``possible_answers`` is a JSON list in a string.

    Returns:
        The question; ``prop`` is its relation and ``s_pop`` (monthly page views of the subject)
        its popularity. The other columns stay in the metadata, as text.
    """
    data = row.data
    return Question(
        id=str(data.get("id") or row.default_id),
        text=text_field(data, "question"),
        answers=answers_field(data, "possible_answers"),
        popularity=number_field(data, "s_pop"),
        relation=data.get("prop") or None,
        metadata=without(data, _USED),
    )
