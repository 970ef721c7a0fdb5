// Written by frontend/generate.py from nbautograd/views/: theme.py, phrases.py, jacobian.py.

/** @type {Record<string, string>} a class for the tone of a chip or a card */
export const TONES = {
  right: "good",
  wrong: "bad",
  "cannot tell": "open",
  meant: "plain",
  unchecked: "plain",
  bug: "bad",
  lint: "open",
  note: "plain",
};

/** @type {Record<string, [string, string]>} a sign and a class for each verdict, of a block or of a report */
export const SIGNS = {
  match: ["✓", "good"],
  mismatch: ["✗", "bad"],
  subgradient: ["∠", "plain"],
  flat: ["–", "open"],
  undecided: ["?", "open"],
  right: ["✓", "good"],
  wrong: ["✗", "bad"],
  "cannot tell": ["?", "open"],
  meant: ["~", "plain"],
  unchecked: ["•", "plain"],
};

/** @type {Record<string, number>} blocks that tell most come first */
export const RANKS = {
  mismatch: 0,
  undecided: 1,
  flat: 2,
  subgradient: 3,
  match: 4,
};
