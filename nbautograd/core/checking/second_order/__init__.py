"""Second derivatives: is the backward of backward right."""
