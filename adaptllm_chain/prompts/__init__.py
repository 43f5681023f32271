"""Prompts: the papers' texts, the formats around them, and the file that ties both to an adapter."""

from adaptllm_chain.prompts.formats import FormatName, FramedPrompt, frame
from adaptllm_chain.prompts.spec import HasPromptSpec, PromptSpec
from adaptllm_chain.prompts.templates import PromptTemplates, join_passages

__all__ = ["FormatName", "FramedPrompt", "HasPromptSpec", "PromptSpec", "PromptTemplates", "frame", "join_passages"]
