/** Commands to type next, so that a shell reads each argument as one. */

/** A command of ours with its arguments quoted where a POSIX shell would take them apart. */
export function command(...words: string[]): string {
  return ['perdure', ...words.map(quoted)].join(' ');
}

/**
 * What was typed, with options that it did not have; those that it had stay as they are.
 *
 * @param more - options and their values.
 */
export function typedWith(more: Readonly<Record<string, string>>): string {
  const typed = process.argv.slice(2);
  // What comes after `--` is no option.
  const end = typed.includes('--') ? typed.indexOf('--') : typed.length;
  const has = (option: string): boolean =>
    typed.slice(0, end).some((word) => word === option || word.startsWith(`${option}=`));
  const added = Object.entries(more).filter(([option]) => !has(option));
  return command(...typed.slice(0, end), ...added.flat(), ...typed.slice(end));
}

function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}
