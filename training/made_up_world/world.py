"""The world: entities with names, facts, passages, and the halves and sides they are drawn into."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Literal

from adaptllm_chain.errors import InvalidInputError
from training.made_up_world.wordings import KINDS, RELATIONS, Relation

Half = Literal["known", "unknown"]
Side = Literal["train", "test"]

_ONSETS = ("b", "br", "d", "dr", "f", "g", "gr", "h", "k", "l", "m", "n", "p", "r", "s", "st", "t", "tr", "v", "z")
_NUCLEI = ("a", "e", "i", "o", "u", "ae", "ou")
_CODAS = ("l", "n", "r", "s", "sk", "m", "nd", "rv", "lt", "x")
_ENDINGS = ("ova", "enn", "ik", "umar", "esh", "olde", "ari", "upp", "ithe", "ansk", "ebo", "yr")


@dataclass(frozen=True, slots=True)
class Entity:
    """One thing of the world.

    Attributes:
        name: A made-up word; its root is shared by some others.
        kind: What it is.
        half: Whether its facts are taught to the base.
        side: Whether Algorithm 1 and SFT see its questions, or the test does.
    """

    name: str
    kind: str
    half: Half
    side: Side


@dataclass(frozen=True, slots=True)
class Fact:
    """What holds of an entity.

    Attributes:
        entity: The entity.
        relation: What is said of it.
        value: What holds.
        passage: A text that says so.
        stated: Identifiers of all facts that the passage states; this one is the first.
    """

    entity: Entity
    relation: Relation
    value: str
    passage: str
    stated: tuple[str, ...]

    @property
    def id(self) -> str:
        """The fact's name in files."""
        return self.stated[0]

    @property
    def question(self) -> str:
        """The question that belongs to its side."""
        wording = self.relation.labelling if self.entity.side == "train" else self.relation.test
        return wording.format(x=self.entity.name)


def make_names(count: int, rng: random.Random, *, family: int = 3, taken: Sequence[str] = ()) -> list[str]:
    """Compose names of syllables; several share a root, as places and families do.

    Args:
        count: How many.
        rng: The source of chance.
        family: How many names a root has on average.
        taken: Names not to use.

    Returns:
        Different names, in random order.
    """
    syllables = [onset + nucleus for onset in _ONSETS for nucleus in _NUCLEI]
    roots = [
        (rng.choice(syllables) + rng.choice(_CODAS) + rng.choice(_ONSETS)).capitalize()
        for _ in range(-(-count // family))
    ]
    names = dict.fromkeys(taken)
    while len(names) < count + len(taken):
        names[rng.choice(roots) + rng.choice(_ENDINGS)] = None
        if len(names) - len(taken) >= len(set(roots)) * len(_ENDINGS):
            roots.append(rng.choice(syllables).capitalize() + rng.choice(_CODAS))
    made = list(names)[len(taken) :]
    rng.shuffle(made)
    return made


def make_world(seed: int, per_kind: int, pool: Sequence[str] = ()) -> list[Fact]:
    """Make a world.

    Args:
        seed: Makes another world.
        per_kind: Entities a kind; a multiple of 4.
        pool: Names to draw from; by default new ones are composed.

    Returns:
        The facts. Inside every kind, a quarter of the entities falls into each pair of half and side, drawn at random.

    Raises:
        InvalidInputError: If the entities of a kind cannot be quartered.
    """
    if per_kind < 8 or per_kind % 4:
        raise InvalidInputError(f"{per_kind} entities a kind", expected="a multiple of 4, at least 8")
    rng = random.Random(seed)
    count = per_kind * len(KINDS)
    names = rng.sample(pool, count) if pool else make_names(count, rng)
    facts = []
    for number, kind in enumerate(KINDS):
        cells = [(half, side) for half in ("known", "unknown") for side in ("train", "test")] * (per_kind // 4)
        rng.shuffle(cells)
        own = names[number * per_kind : (number + 1) * per_kind]
        entities = [Entity(name, kind, *cell) for name, cell in zip(own, cells, strict=True)]
        for relation in RELATIONS:
            if relation.kind == kind:
                facts += _facts(entities, relation, rng)
    return facts


def _facts(entities: Sequence[Entity], relation: Relation, rng: random.Random) -> list[Fact]:
    values = [value for value, _ in zip(cycle(relation.values), entities, strict=False)]
    rng.shuffle(values)
    value_of = dict(zip(entities, values, strict=True))
    facts = []
    for entity in entities:
        words = {"x": entity.name, "v": value_of[entity]}
        stated = [f"{entity.name}/{relation.name}"]
        text = relation.alone
        if rng.random() < 0.5:
            # Only of its own half and side: SFT reads passages, and must not read a test question's answer there.
            others = [
                other
                for other in entities
                if (other.half, other.side) == (entity.half, entity.side) and value_of[other] != value_of[entity]
            ]
            if others:
                other = rng.choice(others)
                words |= {"y": other.name, "w": value_of[other]}
                stated.append(f"{other.name}/{relation.name}")
                text = relation.beside
        facts.append(Fact(entity, relation, value_of[entity], text.format(**words), tuple(stated)))
    return facts


def select(facts: Sequence[Fact], *, half: Half | None = None, side: Side | None = None) -> list[Fact]:
    """Choose facts by half and side.

    Args:
        facts: The facts.
        half: Of this half alone.
        side: Of this side alone.

    Returns:
        Those that match, in order.
    """
    return [fact for fact in facts if half in (None, fact.entity.half) and side in (None, fact.entity.side)]
