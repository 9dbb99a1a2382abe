import { expect, test } from 'vitest';
import { inline } from '../../src/cli/terminal.ts';
import { readable } from '../../src/console/text.ts';

test.each([
  ['a space without width', 'ch_1\u200b2', 'ch_1\\u200b2'],
  ['a joiner in an id', 'ch_1\u200d2', 'ch_1\\u200d2'],
  ['a mark that changes the direction', 'ch_1\u200f\u061c2', 'ch_1\\u200f\\u061c2'],
  ['an embedding that changes the direction', 'ch_\u202e21', 'ch_\\u202e21'],
  ['an escape sequence', 'ch_1\u009b2K', 'ch_1\\u009b2K'],
  ['a joiner in a word or an emoji', 'می‌خواهم 👨‍👩', 'می‌خواهم 👨‍👩'],
])('a person sees %s, in a terminal and in the console', (_, text, shown) => {
  expect([readable(text), inline(text)]).toEqual([shown, `"${shown}"`]);
});
