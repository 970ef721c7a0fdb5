"""magics: %%autograd_function and the line magics."""
