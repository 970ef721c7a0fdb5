"""The exercises of our own notebooks, one module per notebook: what is asked and how it is checked, no solutions."""
