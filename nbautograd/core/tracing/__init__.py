"""Tracing of ``__torch_function__`` and ``__torch_dispatch__``: who was asked, who answered, with what."""
