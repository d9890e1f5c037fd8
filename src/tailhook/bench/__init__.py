"""The judge of hooks: how long they take on this computer, beside programs that do nothing."""
