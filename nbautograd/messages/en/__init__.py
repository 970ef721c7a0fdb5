"""The sentences in English, one module per subject."""
