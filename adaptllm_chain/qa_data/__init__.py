"""Question-answering files, as they are on disk or on the hub, read into one record.

Reads Natural Questions, SQuAD, PopQA, DPR's files, those of the Adapt-LLM authors, and the user's
own JSON lines or tables; files offline, with no remote code, one row at a time.
"""

from __future__ import annotations

from adaptllm_chain.qa_data.catalogue import DATASETS, DataSet, Split
from adaptllm_chain.qa_data.columns import DEFAULT_COLUMNS
from adaptllm_chain.qa_data.cut_files import CutFileError, OnCut
from adaptllm_chain.qa_data.formats import FORMATS, Format
from adaptllm_chain.qa_data.loading import load_data_set
from adaptllm_chain.qa_data.many import question_key, read_many
from adaptllm_chain.qa_data.passages import passages_of
from adaptllm_chain.qa_data.reading import OnProblem, read_questions
from adaptllm_chain.qa_data.report import ReadReport
from adaptllm_chain.qa_data.statistics import Statistics, Tally, describe

__all__ = [
    "DATASETS",
    "DEFAULT_COLUMNS",
    "FORMATS",
    "CutFileError",
    "DataSet",
    "Format",
    "OnCut",
    "OnProblem",
    "ReadReport",
    "Split",
    "Statistics",
    "Tally",
    "describe",
    "load_data_set",
    "passages_of",
    "question_key",
    "read_many",
    "read_questions",
]
