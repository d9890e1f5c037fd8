"""The pool: resident workers that answer hooks in place of cold processes, and the native client in front of them."""
