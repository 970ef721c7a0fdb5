"""Why a block is wrong: hypotheses on its numbers."""
