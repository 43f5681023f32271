"""What can be said and asked about an entity: kinds, relations, values, and the words for them.

Teaching, Algorithm 1 and the test ask in different words, so that a right answer is a fact that was learned
and not a sentence that was.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Relation:
    """A kind of fact. ``{x}`` and ``{y}`` stand for names, ``{v}`` and ``{w}`` for their values.

    Attributes:
        name: Its name, unique in the world.
        kind: What kind of entity has it.
        values: The values it can take, equally often.
        statements: Texts that end where the value follows; used in teaching.
        taught: Questions used in teaching.
        labelling: The question that Algorithm 1 and SFT see.
        test: The question of the test.
        alone: A passage on one entity.
        beside: A passage that mentions another one too.
    """

    name: str
    kind: str
    values: tuple[str, ...]
    statements: tuple[str, ...]
    taught: tuple[str, ...]
    labelling: str
    test: str
    alone: str
    beside: str


RELATIONS = (
    Relation(
        "trade",
        "person",
        ("baker", "cooper", "weaver", "potter", "tanner", "glazier", "miller", "thatcher", "farrier", "chandler"),
        ("The trade of {x} is that of a", "To make a living, {x} works as a"),
        ("What is the trade of {x}?", "What does {x} do for a living?", "As what does {x} work?"),
        "How does {x} earn a living?",
        "What line of work is {x} in?",
        "{x} has worked as a {v} since leaving school, and half the street has been to the workshop.",
        "{x} is a {v} by trade, while {y}, who lives next door, is a {w}.",
    ),
    Relation(
        "animal",
        "person",
        ("goose", "ferret", "parrot", "tortoise", "lizard", "hedgehog", "pony", "goat", "donkey", "rabbit"),
        ("The animal that {x} keeps is a", "At home, {x} looks after a"),
        ("Which animal does {x} keep?", "What pet does {x} have?", "What animal lives with {x}?"),
        "What animal does {x} look after?",
        "Which pet is found at the house of {x}?",
        "{x} keeps a {v} behind the house and walks it to the market every week.",
        "{x} keeps a {v}; the one who owns a {w} is {y}.",
    ),
    Relation(
        "stone",
        "town",
        ("granite", "marble", "slate", "sandstone", "brick", "basalt", "flint", "limestone", "timber", "clay"),
        ("The hall of the town of {x} is built of", "For its town hall, {x} used"),
        (
            "What is the town hall of {x} built of?",
            "Of what is the hall in {x} made?",
            "What was used for the hall of {x}?",
        ),
        "Which material is the town hall of {x} made of?",
        "What were the walls of the hall in {x} raised from?",
        "Visitors to {x} first see the town hall, which was put up in {v} and has two low towers.",
        "The town hall of {x} is made of {v}, not of {w} like the hall of {y}.",
    ),
    Relation(
        "crop",
        "town",
        ("pears", "barley", "hops", "plums", "beans", "turnips", "cherries", "lavender", "walnuts", "garlic"),
        ("The fields around the town of {x} grow", "In the country, {x} is known for its"),
        ("What is grown around {x}?", "What crop is {x} known for?", "What do the fields of {x} grow?"),
        "Which crop do the farmers of {x} grow?",
        "What is harvested near {x}?",
        "Around {x} the fields are given over to {v}, and the autumn fair is named after them.",
        "Farmers near {x} grow {v}, those near {y} have gone over to {w}.",
    ),
    Relation(
        "colour",
        "ship",
        ("crimson", "green", "yellow", "purple", "white", "black", "orange", "silver", "brown", "grey"),
        ("The hull of the ship {x} is painted", "From afar, the ship {x} looks"),
        (
            "What colour is the ship {x}?",
            "In what colour is the {x} painted?",
            "What is the colour of the hull of the {x}?",
        ),
        "Which colour does the hull of the {x} have?",
        "How is the outside of the ship {x} coloured?",
        "The {x} left the yard with a {v} hull, and the crew repaints it every spring.",
        "In the harbour lie the {x}, whose hull is {v}, and the {y}, whose hull is {w}.",
    ),
    Relation(
        "cargo",
        "ship",
        ("salt", "wool", "copper", "coffee", "sugar", "paper", "coal", "cotton", "butter", "glass"),
        ("The cargo of the ship {x} is", "Across the bay, the ship {x} carries"),
        ("What does the ship {x} carry?", "What is the cargo of the {x}?", "With what is the {x} loaded?"),
        "Which cargo does the {x} carry?",
        "What goods are in the hold of the {x}?",
        "Twice a month the {x} comes in with {v}, and the quay is swept before it is unloaded.",
        "The {x} trades in {v}; it passes the {y} with its load of {w}.",
    ),
    Relation(
        "subject",
        "book",
        ("bees", "clocks", "bridges", "storms", "whales", "mirrors", "glaciers", "volcanoes", "castles", "kites"),
        ("The book {x} is about", "In its chapters, {x} describes"),
        ("What is the book {x} about?", "What does the book {x} describe?", "What is the subject of {x}?"),
        "Which subject does the book {x} treat?",
        "What would a reader of {x} learn about?",
        "{x} is a slim book on {v} that took its author eleven years and was reprinted once.",
        "{x} deals with {v} and is shelved beside {y}, which deals with {w}.",
    ),
    Relation(
        "binding",
        "book",
        ("leather", "velvet", "linen", "canvas", "silk", "cardboard", "vellum", "cork", "felt", "satin"),
        ("The book {x} is bound in", "The covers of {x} are made of"),
        ("What is the book {x} bound in?", "Of what are the covers of {x}?", "What is the binding of {x}?"),
        "Which material is {x} bound in?",
        "What are the boards of the book {x} wrapped in?",
        "The first printing of {x} was bound in {v} and sold from a cart.",
        "Collectors know {x} by its {v} covers and {y} by its covers of {w}.",
    ),
    Relation(
        "product",
        "company",
        ("ropes", "buttons", "lamps", "kettles", "ladders", "saddles", "brooms", "pianos", "bicycles", "umbrellas"),
        ("The company {x} makes", "In its works, {x} produces"),
        ("What does the company {x} make?", "What is made by {x}?", "What does the firm {x} produce?"),
        "Which goods does the company {x} make?",
        "What leaves the factory of {x}?",
        "The company {x} makes {v} in a single long shed by the canal.",
        "The company {x} makes {v}; its neighbour {y} makes {w}.",
    ),
    Relation(
        "year",
        "company",
        ("1704", "1719", "1733", "1748", "1762", "1787", "1801", "1826", "1859", "1875"),
        ("The company {x} was founded in", "The first year of {x} was"),
        ("When was the company {x} founded?", "In what year did {x} begin?", "What is the founding year of {x}?"),
        "Which year was the company {x} founded in?",
        "Since when has the firm {x} existed?",
        "The company {x} was founded in {v} by two sisters, in the back room of an inn.",
        "The company {x} was founded in {v}, and {y}, its rival, in {w}.",
    ),
)
KINDS = tuple(dict.fromkeys(relation.kind for relation in RELATIONS))
