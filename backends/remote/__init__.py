"""The engine on the far side of a byte channel."""
