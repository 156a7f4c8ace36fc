"""`ragauge labels`: which answers people should label; and shares by labels of another period (Rogan-Gladen)."""
