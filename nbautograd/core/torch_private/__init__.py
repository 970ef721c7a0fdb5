"""Every private name of torch that this package uses, each behind a probe with a way to go on without it."""
