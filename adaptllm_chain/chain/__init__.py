"""The chain: one question's way from prompt to decision to answer."""

from adaptllm_chain.chain.adaptive import AdaptiveRetrievalChain
from adaptllm_chain.chain.history import condense_question
from adaptllm_chain.chain.inputs import AdaptiveInput, QuestionMapping
from adaptllm_chain.chain.plan import OnEmpty

__all__ = ["AdaptiveInput", "AdaptiveRetrievalChain", "OnEmpty", "QuestionMapping", "condense_question"]
