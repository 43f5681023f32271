"""AGREE: answers whose sentences cite passages, and more retrieval where support is missing (arXiv:2311.09533)."""

from __future__ import annotations

from adaptllm_chain.agree.adaptive import AdaptiveGroundedChain
from adaptllm_chain.agree.answers import AdaptiveGroundedAnswer, GroundedAnswer, GroundingStep, LoopedAnswer
from adaptllm_chain.agree.attribution import PostHocAttribution
from adaptllm_chain.agree.grounded import GroundedAnswerChain, Grounder
from adaptllm_chain.agree.labelling import best_grounded, label_sentences, link
from adaptllm_chain.agree.loop import GroundingLoop
from adaptllm_chain.agree.passages import premise_of
from adaptllm_chain.agree.prompts import CitingExample, GroundedPrompt
from adaptllm_chain.agree.response import GroundedResponse, parse_response, sentence_texts, verbalise
from adaptllm_chain.agree.sentences import split_sentences

__all__ = [
    "AdaptiveGroundedAnswer",
    "AdaptiveGroundedChain",
    "CitingExample",
    "GroundedAnswer",
    "GroundedAnswerChain",
    "GroundedPrompt",
    "GroundedResponse",
    "Grounder",
    "GroundingLoop",
    "GroundingStep",
    "LoopedAnswer",
    "PostHocAttribution",
    "best_grounded",
    "label_sentences",
    "link",
    "parse_response",
    "premise_of",
    "sentence_texts",
    "split_sentences",
    "verbalise",
]
