"""Question-answering files, as they are on disk, read into one record.

Reads Natural Questions, SQuAD, PopQA, DPR's files, those of the Adapt-LLM authors, and the user's
own JSON lines or tables; offline, with no remote code, one row at a time.
"""

from __future__ import annotations

from adaptllm_chain.qa_data.columns import DEFAULT_COLUMNS
from adaptllm_chain.qa_data.formats import FORMATS, Format
from adaptllm_chain.qa_data.many import question_key, read_many
from adaptllm_chain.qa_data.reading import OnProblem, read_questions
from adaptllm_chain.qa_data.report import ReadReport

__all__ = [
    "DEFAULT_COLUMNS",
    "FORMATS",
    "Format",
    "OnProblem",
    "ReadReport",
    "question_key",
    "read_many",
    "read_questions",
]
