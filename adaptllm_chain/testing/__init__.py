"""Fakes for tests, ours and yours: real LangChain models and a retriever, without a model or an index."""

from adaptllm_chain.testing.chat_model import ScriptedChatModel
from adaptllm_chain.testing.llm import ScriptedLLM
from adaptllm_chain.testing.retriever import CountingRetriever
from adaptllm_chain.testing.script import Reply, Script, say

__all__ = ["CountingRetriever", "Reply", "Script", "ScriptedChatModel", "ScriptedLLM", "say"]
