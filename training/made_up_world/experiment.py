"""The experiment: world, base, teaching, Algorithm 1, SFT and the chain, stage by stage."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from langchain_core.documents import Document

from adaptllm_chain.errors import AdaptLLMError
from adaptllm_chain.evaluation import Prediction, predict
from adaptllm_chain.journal import Journal, write_whole
from adaptllm_chain.records import Question
from training.made_up_world.figures import MODES, summarise_world
from training.made_up_world.settings import Settings
from training.made_up_world.stages import Stages
from training.made_up_world.world import Fact, make_world, select

# Whether a name is familiar is found by attention to it; what is known lies in the other layers, and stays there.
_ATTENTION = ("q_proj", "k_proj", "v_proj", "o_proj")
# Tokens of a packed sequence, about a batch of the rows that are taught.
_PACK = 512
_PACKAGES = ("torch", "transformers", "peft", "trl", "faiss-cpu", "sentence-transformers")


def run(settings: Settings, out: Path, command: str) -> dict[str, Any]:
    """Run the experiment, or what is left of it.

    Args:
        settings: What it depends on.
        out: The run's folder.
        command: What was typed, for the result.

    Returns:
        What is written to ``result.json``.
    """
    stages = Stages(out, settings.model_dump())
    facts = make_world(settings.seed, settings.per_kind)
    stages.run("world", lambda folder: _write_world(facts, folder))
    taught = stages.run("taught", lambda folder: _teach(facts, settings, folder))
    stages.run("algorithm1", lambda folder: _algorithm1(settings, out, folder))
    sft = stages.run("sft", lambda folder: _sft(settings, out, folder))
    found = stages.run("index", lambda folder: _index(facts, settings, folder))
    answers = stages.run("answers", lambda folder: _answer(facts, settings, out, folder))
    rows = map(json.loads, (out / "algorithm1" / "rows.jsonl").read_text(encoding="utf-8").splitlines())
    labels = {row["question_id"]: row["label"] for row in rows if row["kind"] == "parametric"}
    predictions = {mode: [Prediction.model_validate(row) for row in made] for mode, made in answers.items()}
    reading = predictions.pop("reading")
    result = {
        "command": command,
        "settings": settings.model_dump(),
        "counts": {
            "entities": len({fact.entity for fact in facts}),
            "facts": len(facts),
            "taught_facts": len(select(facts, half="known")),
            "training_questions": len(select(facts, side="train")),
            "test_questions": len(select(facts, side="test")),
        },
        "figures": summarise_world(facts, labels, predictions, reading, found),
        "teaching_losses": taught,
        "sft": sft,
        "seconds": stages.seconds,
        "versions": {package: version(package) for package in _PACKAGES},
    }
    write_whole(out / "result.json", json.dumps(result, indent=2, ensure_ascii=False) + "\n")
    return result


def _write_world(facts: Sequence[Fact], folder: Path) -> int:
    questions = [
        {"id": fact.id, "question": fact.question, "answers": [fact.value], "gold_passage": fact.passage}
        for fact in select(facts, side="train")
    ]
    write_whole(folder / "questions.jsonl", "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in questions))
    return len(questions)


def _teach(facts: Sequence[Fact], settings: Settings, folder: Path) -> list[float]:
    from training.made_up_world.teaching import Text, fact_texts, teach
    from training.made_up_world.tiny_base import Elsewhere, make_tiny_base

    names = sorted({fact.entity.name for fact in facts})
    elsewhere = Elsewhere(settings.seed, names)
    if settings.base == "tiny":
        model, tokenizer = make_tiny_base(elsewhere, names, settings.seed, settings.upbringing_epochs)
    else:
        from adaptllm_chain.llms.loading import load_base, load_tokenizer

        model = load_base("embedded", dtype="float32", device="cpu")
        tokenizer = load_tokenizer("embedded")
    known = select(facts, half="known")

    def texts_of_epoch(epoch: int) -> list[Text]:
        rng = random.Random(f"{settings.seed}/{epoch}")
        part = settings.rehearsal
        again = elsewhere.texts(1000 + epoch, read=part, general=part) if part else []
        return [*fact_texts(known, rng), *again]

    losses = teach(
        model,
        tokenizer,
        texts_of_epoch,
        epochs=settings.teach_epochs,
        learning_rate=settings.teach_rate,
        batch_size=settings.batch_size,
        enough=settings.teach_enough,
        freeze_embeddings=settings.base != "tiny",
        pack=0 if settings.base == "tiny" else _PACK,
    )
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return losses


def _algorithm1(settings: Settings, out: Path, folder: Path) -> None:
    from training import algorithm1

    arguments = ["--data", out / "world" / "questions.jsonl", "--out", folder, "--model", out / "taught"]
    arguments += ["--prompt-format", "plain", "--dtype", "float32", "--device", "cpu", "--max-new-tokens", 6]
    arguments += ["--batch-size", settings.batch_size]
    if algorithm1.main([str(argument) for argument in arguments]):
        raise AdaptLLMError("Algorithm 1 failed; its message stands above")


def _sft(settings: Settings, out: Path, folder: Path) -> dict[str, Any]:
    from training import sft
    from training.recipe import Recipe

    recipe = Recipe.model_validate(
        {
            "base": str(out / "taught"),
            "rows": out / "algorithm1" / "rows.jsonl",
            "out": folder,
            "format": "plain",
            "dev_fraction": 0.0,
            "epochs": settings.sft_epochs,
            "learning_rate": settings.sft_rate,
            "schedule": "cosine",
            "warmup_steps": 5,
            "batch_size": settings.batch_size,
            "micro_batch_size": settings.batch_size // 2,
            "lora_r": settings.sft_rank,
            "lora_alpha": 2 * settings.sft_rank,
            "lora_dropout": 0.0,
            "lora_targets": _ATTENTION,
            "dtype": "float32",
            "device": "cpu",
            "save_steps": 50,
            "seed": settings.seed,
        }
    )
    result = sft.run(recipe)
    return {key: result[key] for key in ("rows", "steps", "train_loss", "train_seconds") if key in result}


def _index(facts: Sequence[Fact], settings: Settings, folder: Path) -> list[list[str]]:
    """Build the index of all passages; return what the best passage of each test question states."""
    from adaptllm_chain.retrieval import FaissPassageStore, embedded_embeddings

    store = FaissPassageStore.from_texts(
        [fact.passage for fact in facts],
        embedded_embeddings(),
        [{"stated": list(fact.stated)} for fact in facts],
        ids=[fact.id for fact in facts],
    )
    store.save(folder / "store")
    asked = [fact.question for fact in select(facts, side="test")]
    best = store.as_retriever(k=settings.k).batch(asked)
    return [[one for passage in passages[:1] for one in passage.metadata["stated"]] for passages in best]


def _answer(facts: Sequence[Fact], settings: Settings, out: Path, folder: Path) -> dict[str, Any]:
    from tqdm import tqdm

    from adaptllm_chain.chain import AdaptiveRetrievalChain
    from adaptllm_chain.llms import LocalLLM
    from adaptllm_chain.retrieval import FaissPassageStore, GivenPassagesRetriever, embedded_embeddings

    questions = [
        Question(id=fact.id, text=fact.question, answers=(fact.value,), gold_passage=Document(fact.passage))
        for fact in select(facts, side="test")
    ]
    load = partial(LocalLLM.from_pretrained, out / "taught", device="cpu", batch_size=settings.batch_size)
    adapted = load(adapter=out / "sft", max_new_tokens=8)
    # From memory alone: what the base knows, before SFT could make it forget.
    base = load(format="plain", max_new_tokens=8)
    store = FaissPassageStore.load(out / "index" / "store", embedded_embeddings())
    searched = store.as_retriever(k=settings.k)
    gold = GivenPassagesRetriever.from_questions(questions, source="gold", k=1)
    answers = {}
    for mode in (*MODES, "reading"):
        # Reading: always retrieve, from a retriever that is always right.
        reads = mode == "reading"
        llm = base if mode == "never_retrieve" else adapted
        chain = AdaptiveRetrievalChain(
            llm=llm, retriever=gold if reads else searched, policy="always_retrieve" if reads else mode
        )
        with (
            Journal(folder / f"{mode}.jsonl", {"mode": mode, "weights": llm.fingerprint}) as journal,
            tqdm(total=len(questions), unit="question", desc=mode) as bar,
        ):
            size = 2 * settings.batch_size
            bar.update(min(len(journal) * size, len(questions)))
            made = predict(
                chain, questions, journal, chunk=size, answered=lambda chunk, bar=bar: bar.update(chunk.questions)
            )
        answers[mode] = [row.model_dump(mode="json") for row in made]
    return answers
