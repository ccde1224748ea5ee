"""Pure rules of text that tools share: encodings, cutting, matching, diffs, wording."""
