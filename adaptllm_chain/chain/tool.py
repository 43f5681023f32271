"""The chain as a tool of an agent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_core.runnables import Runnable
from langchain_core.tools import StructuredTool
from pydantic import BaseModel, Field, create_model, field_validator

from adaptllm_chain.chain.inputs import AdaptiveInput
from adaptllm_chain.records import AdaptiveAnswer

NAME = "answer_question"
DESCRIPTION = (
    "Answers a question about facts: from the model's memory where that is enough, otherwise from passages of a "
    "document collection that are searched for. Ask one question at a time."
)


class ToolQuestion(BaseModel):
    """What an agent passes to the tool.

    Attributes:
        question: The question.
    """

    question: str = Field(description="One question that can be understood without the conversation.")

    # Refused here, the agent is told so and may ask again; refused by the chain, the agent's run would end.
    @field_validator("question")
    @classmethod
    def _is_asked(cls, question: str) -> str:
        if not question.strip():
            raise ValueError("the question is empty")
        return question


def answering_tool(
    chain: Runnable[AdaptiveInput, AdaptiveAnswer],
    args_schema: type[BaseModel] | None = None,
    name: str | None = None,
    description: str | None = None,
    arg_types: Mapping[str, type] | None = None,
) -> StructuredTool:
    """Make a tool whose content is the answer and whose artifact is the chain's whole result.

    Args:
        chain: The chain.
        args_schema: The arguments, which the chain gets as a mapping; by default a ``ToolQuestion``.
        name: What the agent calls the tool.
        description: What the agent reads to know when to use it.
        arg_types: Names and types of the arguments, instead of a schema.

    Returns:
        The tool.
    """
    name = name or NAME
    if args_schema is None:
        fields: dict[str, Any] = {key: (kind, ...) for key, kind in (arg_types or {}).items()}
        args_schema = create_model(name, **fields) if fields else ToolQuestion

    # No config is passed on: LangChain's context holds that of the tool's children, the one of the call is its own.
    # LangChain hands on a bare text by position: tool.invoke("Who wrote Emma?").
    def answer(*text: str, **arguments: Any) -> tuple[str, AdaptiveAnswer]:
        result = chain.invoke(*text or (arguments,))
        return result["answer"], result

    async def aanswer(*text: str, **arguments: Any) -> tuple[str, AdaptiveAnswer]:
        result = await chain.ainvoke(*text or (arguments,))
        return result["answer"], result

    return StructuredTool.from_function(
        answer,
        aanswer,
        name=name,
        description=description or DESCRIPTION,
        args_schema=args_schema,
        response_format="content_and_artifact",
    )
