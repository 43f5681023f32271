"""A made-up world on which to find out whether the method works, whatever little a small model knows.

Half of the entities are taught to the base, the other half stands in passages alone; which half an entity
belongs to is drawn at random. Algorithm 1, SFT and the chain then run on it as on any data.

    python -m training.made_up_world --out runs/world
    python -m training.made_up_world --out runs/world-small --small

Each stage writes a folder; a finished stage is not run again. ``result.json`` holds the figures.
"""
