"""Torch's own gradient errors: from a program that stopped to the tensor and the line behind it."""
