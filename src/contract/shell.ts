/** Commands to type next, so that a shell reads each argument as one. */

/** A command of ours with its arguments quoted where a POSIX shell would take them apart; placeholders are added to it. */
export function command(...words: string[]): string {
  return ['perdure', ...words.map(quoted)].join(' ');
}

function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}
