"""Evaluation: questions through a chain into predictions, and predictions into figures."""

from adaptllm_chain.evaluation.cost import Cost, CostMeter, SharedAnswers
from adaptllm_chain.evaluation.estimate import Estimate, wilson_share
from adaptllm_chain.evaluation.judgement import Judgement
from adaptllm_chain.evaluation.prediction import Chunk, Prediction, predict, sample_questions
from adaptllm_chain.evaluation.runs import SECONDS_FILE, Run, Seconds, library_versions, read_runs
from adaptllm_chain.evaluation.suites import SUITES, Planned, Suite
from adaptllm_chain.evaluation.summary import Summary, render_table, summarise
from adaptllm_chain.evaluation.tradeoff import Tradeoff, TradeoffPoint, trade_off

__all__ = [
    "SECONDS_FILE",
    "SUITES",
    "Chunk",
    "Cost",
    "CostMeter",
    "Estimate",
    "Judgement",
    "Planned",
    "Prediction",
    "Run",
    "Seconds",
    "SharedAnswers",
    "Suite",
    "Summary",
    "Tradeoff",
    "TradeoffPoint",
    "library_versions",
    "predict",
    "read_runs",
    "render_table",
    "sample_questions",
    "summarise",
    "trade_off",
    "wilson_share",
]
