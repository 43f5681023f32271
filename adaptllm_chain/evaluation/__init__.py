"""Evaluation: questions through a chain into predictions, and predictions into figures."""

from adaptllm_chain.evaluation.prediction import Prediction, predict, sample_questions
from adaptllm_chain.evaluation.summary import Proportion, Summary, render_table, summarise

__all__ = ["Prediction", "Proportion", "Summary", "predict", "render_table", "sample_questions", "summarise"]
