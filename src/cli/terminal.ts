/** Everything that the command line writes. */
import { styleText } from 'node:util';

/** How long something may take before it is said that it goes on, in milliseconds. */
const SPIN_AFTER_MS = 200;

type Format = Parameters<typeof styleText>[0];

/**
 * Standard output is for results: text for people, or JSON. Standard error is for errors and progress; with JSON
 * there is no progress, so that what is there is the error.
 */
export class Terminal {
  /** Whether results are JSON. Known once the arguments have been read. */
  json = false;
  /** Whether somebody watches the results appear. */
  readonly live: boolean = Boolean(process.stdout.isTTY);

  /** Text with a style where standard output is a terminal that wants it. */
  style(format: Format, text: string): string {
    return styleText(format, text, { stream: process.stdout });
  }

  /** Text with a style where standard error is a terminal that wants it. */
  styleError(format: Format, text: string): string {
    return styleText(format, text, { stream: process.stderr });
  }

  /** The one result of a verb. */
  result(value: object, human: () => string): void {
    this.write(this.json ? `${JSON.stringify(value, null, 2)}\n` : `${human()}\n`);
  }

  /** One of several results. */
  item(value: object, human: () => string | null): void {
    const text = this.json ? JSON.stringify(value) : human();
    if (text !== null) this.write(`${text}\n`);
  }

  /** Raw text to standard output. */
  write(text: string): void {
    process.stdout.write(text);
  }

  /** A line for a person who waits. */
  progress(text: string): void {
    if (!this.json) process.stderr.write(`${this.styleError('dim', text)}\n`);
  }

  /** A line about something that is wrong but does not stop the verb. */
  warn(text: string): void {
    if (!this.json) process.stderr.write(`${this.styleError('yellow', 'warning')} ${text}\n`);
  }

  /** An error's line, or lines. */
  error(text: string): void {
    process.stderr.write(`${text}\n`);
  }

  /** Shows that something which may take long goes on: a spinner on a terminal, otherwise nothing but its lines. */
  async wait<T>(text: string, work: (tell: (line: string) => void) => Promise<T>): Promise<T> {
    if (this.json || !process.stderr.isTTY) return work((line) => this.progress(line));
    const { default: yoctoSpinner } = await import('yocto-spinner');
    const spinner = yoctoSpinner({ text, stream: process.stderr, handleSignals: false });
    // What is quick is not worth a flicker.
    const later = setTimeout(() => spinner.start(), SPIN_AFTER_MS);
    // An interrupt must not leave the terminal without its cursor.
    const stop = (): void => void spinner.stop();
    process.once('exit', stop);
    try {
      return await work((line) => {
        spinner.text = clean(line);
      });
    } finally {
      clearTimeout(later);
      process.off('exit', stop);
      spinner.stop();
    }
  }
}

/**
 * Text that somebody else wrote, made harmless for a terminal: escape sequences and marks that change the
 * direction of writing could make a call look like another one to the person who approves it.
 */
export function clean(text: string): string {
  return text.replace(
    /[^\P{Cc}\n\t]|[\u202a-\u202e\u2066-\u2069]/gu,
    (character) => `\\u${(character.codePointAt(0) ?? 0).toString(16).padStart(4, '0')}`,
  );
}

/** A value as one line of JSON that is harmless for a terminal. */
export function inline(value: unknown, limit: number = Number.POSITIVE_INFINITY): string {
  const text = clean(JSON.stringify(value) ?? 'null');
  return text.length > limit ? `${text.slice(0, limit)}…` : text;
}
