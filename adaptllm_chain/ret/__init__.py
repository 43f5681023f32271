"""The request for retrieval: its spelling, its probability, the policies, their threshold, the gate for streams."""

from adaptllm_chain.ret.calibration import BEST_ACCURACY, Calibration, Objective, choose_threshold
from adaptllm_chain.ret.decision_model import DecisionModelPolicy
from adaptllm_chain.ret.gate import AnswerFilter, Gate, clean_answer
from adaptllm_chain.ret.judge import Judge
from adaptllm_chain.ret.marker import REASONS, RET, Spelling, is_request, may_become_marker, read_spelling
from adaptllm_chain.ret.policies import (
    Adaptive,
    AlwaysRetrieve,
    Evidence,
    NeverRetrieve,
    Policy,
    PolicyName,
    PopularityThreshold,
    as_policy,
)
from adaptllm_chain.ret.probability import read_signal, says_ret

__all__ = [
    "BEST_ACCURACY",
    "REASONS",
    "RET",
    "Adaptive",
    "AlwaysRetrieve",
    "AnswerFilter",
    "Calibration",
    "DecisionModelPolicy",
    "Evidence",
    "Gate",
    "Judge",
    "NeverRetrieve",
    "Objective",
    "Policy",
    "PolicyName",
    "PopularityThreshold",
    "Spelling",
    "as_policy",
    "choose_threshold",
    "clean_answer",
    "is_request",
    "may_become_marker",
    "read_signal",
    "read_spelling",
    "says_ret",
]
