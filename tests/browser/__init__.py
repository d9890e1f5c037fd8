"""Tests in a real browser. As a package, so that its fixtures end before the tests of another folder begin."""
