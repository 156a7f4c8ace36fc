"""`ragauge labels`: chooses answers for people to label; shares by labels of another period (Rogan-Gladen)."""
