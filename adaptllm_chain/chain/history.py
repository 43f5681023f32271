"""Follow-up questions: what was meant is written out before the chain is asked."""

from __future__ import annotations

from typing import Any

from langchain_core.language_models import LanguageModelLike
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import BasePromptTemplate, ChatPromptTemplate
from langchain_core.runnables import Runnable, RunnableBranch, RunnableLambda, RunnablePassthrough

from adaptllm_chain.chain.inputs import read_history, read_input
from adaptllm_chain.chain.settings import as_runnable

INSTRUCTIONS = (
    "Write the user's last question so that it can be understood without the conversation: put what was meant in place "
    "of what refers to earlier turns, and leave the rest as it is. If it can be understood by itself, repeat it word "
    "for word. Do not answer it. Reply with the question alone."
)
CONDENSE = ChatPromptTemplate.from_messages(
    [("system", INSTRUCTIONS), ("placeholder", "{chat_history}"), ("human", "{input}")]
)


def condense_question(llm: LanguageModelLike, prompt: BasePromptTemplate[Any] | None = None) -> Runnable[Any, Any]:
    """Make a step before the chain that rewrites a follow-up question as one that stands by itself.

    It takes what the chain takes. The conversation is the mapping's ``chat_history``, as for LangChain's
    ``create_history_aware_retriever``, or else the messages before the user's last. The rewritten question becomes the
    mapping's ``input``; its other keys stay. A first question is passed on untouched, without a call of the model.

        chain = condense_question(chat_model) | AdaptiveRetrievalChain(llm=llm, retriever=retriever)
        chain.invoke({"input": "And when did it open?", "chat_history": messages})["answer"]

    Args:
        llm: The model that rewrites: any that follows instructions; a model tuned to say ``<RET>`` may not.
        prompt: Its prompt, with the variables ``input`` and ``chat_history``; by default one of ours.

    Returns:
        The step; its run is called ``condense_question`` in traces.

    Raises:
        InvalidInputError: If ``llm`` is no model.
    """
    standalone: Runnable[Any, str] = (
        (CONDENSE if prompt is None else prompt) | as_runnable("llm", llm) | StrOutputParser()
    )
    rewrite = RunnableLambda(_turn) | RunnablePassthrough.assign(input=standalone)
    untouched: Runnable[Any, Any] = RunnablePassthrough()
    return RunnableBranch((_follows_up, rewrite), untouched).with_config(run_name="condense_question")


def _follows_up(value: Any) -> bool:
    return bool(read_history(value))


def _turn(value: Any) -> dict[str, Any]:
    asked = read_input(value)
    return {**asked.carried, "input": asked.question, "chat_history": read_history(value)}
