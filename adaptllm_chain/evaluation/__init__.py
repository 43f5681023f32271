"""Evaluation: questions through a chain into predictions, and predictions into figures."""

from adaptllm_chain.evaluation.prediction import Prediction, predict, sample_questions
from adaptllm_chain.evaluation.summary import Proportion, Summary, render_table, summarise
from adaptllm_chain.evaluation.tradeoff import Tradeoff, TradeoffPoint, trade_off

__all__ = [
    "Prediction",
    "Proportion",
    "Summary",
    "Tradeoff",
    "TradeoffPoint",
    "predict",
    "render_table",
    "sample_questions",
    "summarise",
    "trade_off",
]
