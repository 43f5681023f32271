"""AGREE's evaluation (arXiv:2311.09533): four systems that cite, on the same questions and the same passages."""

from adaptllm_chain.evaluation.grounding.controlled import EXTRACTIVE, ControlledPrediction, predict_controlled
from adaptllm_chain.evaluation.grounding.extractive import ExtractiveWriter, Statement, plan_statements
from adaptllm_chain.evaluation.grounding.judgement import GroundedJudgement, judge
from adaptllm_chain.evaluation.grounding.known_marks import KnownMarks
from adaptllm_chain.evaluation.grounding.prediction import GroundedPrediction, ShownPassage, predict_grounded
from adaptllm_chain.evaluation.grounding.published import PUBLISHED_GROUNDING, PublishedGrounding
from adaptllm_chain.evaluation.grounding.runs import SUITE, GroundedRun, holds_grounded_runs, read_grounded_runs
from adaptllm_chain.evaluation.grounding.scores import ENTAILMENT_FILE, KnownScores
from adaptllm_chain.evaluation.grounding.systems import SYSTEMS, Ingredients, System

__all__ = [
    "ENTAILMENT_FILE",
    "EXTRACTIVE",
    "PUBLISHED_GROUNDING",
    "SUITE",
    "SYSTEMS",
    "ControlledPrediction",
    "ExtractiveWriter",
    "GroundedJudgement",
    "GroundedPrediction",
    "GroundedRun",
    "Ingredients",
    "KnownMarks",
    "KnownScores",
    "PublishedGrounding",
    "ShownPassage",
    "Statement",
    "System",
    "holds_grounded_runs",
    "judge",
    "plan_statements",
    "predict_controlled",
    "predict_grounded",
    "read_grounded_runs",
]
